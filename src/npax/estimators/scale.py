"""Values that do not vary, and so do not say how large deviations from them are."""

import numpy as np

from ..inference.standardise import SAME
from ..warn import warn


def warn_of_no_scale(values: np.ndarray, what: str, remedy: str) -> None:
    """Warns where all values `[n]` are one but for rounding errors; `what` they are, as the message begins."""
    if values.size and values.max() <= values.min() + SAME * abs(values.min()):
        warn(
            f"{what} are {values[0]:g}: nothing says how large deviations are, and they are taken to be about 1. "
            f"{remedy}"
        )
