"""One thread a process: sums, and so results to the last digit, do not depend on the machine."""

import scipy.linalg
import sklearn.linear_model
from threadpoolctl import threadpool_limits

# Plugins may have loaded NumPy before this file, when its environment variables come too late.
LIBRARIES = (scipy.linalg, sklearn.linear_model)
LIMITS = threadpool_limits(1)
