"""nbval starts kernels in the environment that made the outputs of the chapters."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from execute import ENV  # noqa: E402

os.environ.update(ENV)
