import numpy as np
from numpy.typing import ArrayLike

from ..arrays import floats


def checked(*, positive: tuple[str, ...] = (), **arrays: ArrayLike) -> list[np.ndarray]:
    """The arrays in float64, flat: of one shape, not empty, finite and not masked; those named in `positive` above
    zero."""
    out = {name: floats(value) for name, value in arrays.items()}
    shapes = {name: value.shape for name, value in out.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"The arguments must have one shape (they are not broadcast), got {shapes}.")
    for name, value in out.items():
        if value.size == 0:
            raise ValueError(f"`{name}` is empty: there is nothing to score.")
        if not np.isfinite(value).all():
            count = np.count_nonzero(~np.isfinite(value))
            raise ValueError(f"`{name}` has {count} values that are not finite, or masked: drop those rows first.")
        if name in positive and value.min() <= 0:
            raise ValueError(f"`{name}` must be above 0, its smallest value is {value.min()}.")
    return [value.ravel() for value in out.values()]


def checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, both excluded, got {level}; 0.95 is usual.")
    return level
