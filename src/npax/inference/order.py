"""Orders that do not depend on the one in which observations come."""

import numpy as np


def sorted_rows(points: np.ndarray, *ties: np.ndarray | None) -> np.ndarray:
    """Indices that sort `points [n d]`, those at the same place by the columns of `ties`, each `[n _]`."""
    arrays = [a for a in (points, *ties) if a is not None]
    return np.lexsort([column for a in reversed(arrays) for column in a.T])
