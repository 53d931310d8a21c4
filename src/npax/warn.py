"""Warnings that name the user's line."""

import sys
import warnings

INSIDE = ("npax", "contextlib", "numpy", "xarray", "jaxtyping", "beartype")
"""Packages whose frames are passed over."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line outside of npax that led here; the `npax` command is outside too."""
    frame, level = sys._getframe(1), 2
    while frame is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module):
    return module.partition(".")[0] in INSIDE and not module.startswith("npax.cli")
