"""Types that every room uses."""

import numpy as np
from jaxtyping import Array

AnyArray = Array | np.ndarray
