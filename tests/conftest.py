"""One thread per process and one state of NumPy's generator: a test does the same on each machine and in any order."""

import shutil
import subprocess

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.linalg
import sklearn.linear_model
from threadpoolctl import threadpool_limits

# Plugins may have loaded NumPy before this file, when its environment variables come too late.
LIBRARIES = (scipy.linalg, sklearn.linear_model)
LIMITS = threadpool_limits(1)


@pytest.fixture(autouse=True)
def same_state():
    """What takes random_state=None draws from this generator; a figure is gone after its test."""
    np.random.seed(0)  # noqa: NPY002 (scikit-learn draws from it)
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def dom(tmp_path_factory):
    """The document that headless Chromium makes of a page, as text."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("chromium is not installed")
    folder = tmp_path_factory.mktemp("chromium")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={folder}/home", "--virtual-time-budget=2000"]

    def show(text):
        (folder / "page.html").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, "--dump-dom", (folder / "page.html").as_uri()],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        return done.stdout

    return show
