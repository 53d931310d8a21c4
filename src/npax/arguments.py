"""Checks of arguments that classes share."""

from numbers import Integral
from typing import Any

import numpy as np


def at_least_one(**sizes: int) -> None:
    """**Raises** `ValueError` for the first of the arguments that is below 1."""
    for name, value in sizes.items():
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")


def whole_number(least: int, **numbers: Any) -> None:
    """**Raises** `ValueError` for the first argument that is none, or is below `least`; `True` is none."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"`{name}` must be a whole number, at least {least}; got {value!r}.")


def true_or_false(**flags: Any) -> None:
    """**Raises** `ValueError` for the first argument that is neither: a text such as "no" would be taken for yes."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool):
            raise ValueError(f"`{name}` must be True or False, got {value!r}.")
