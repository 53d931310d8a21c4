"""Observations far away from all others, which are in their way."""

from collections.abc import Mapping

import numpy as np

from ..warn import warn

MOST, WITHIN = 0.9, 0.04
"""The share of observations, and that of the range of all, within which so many lie where the others are strays."""
FEWEST = 10


def warn_of_strays(columns: Mapping[str, np.ndarray]) -> None:
    """Of coordinates `[n]` by what to call them: where a few lie so far away that the others are as good as one place,
    since the network is shown the range of all."""
    for name, column in columns.items():
        half = (1 - MOST) / 2
        low, high = np.quantile(column, [half, 1 - half])
        if len(column) < FEWEST or not 0 < high - low < WITHIN * np.ptp(column):
            continue
        outside = np.count_nonzero((column < low - (high - low)) | (column > high + (high - low)))
        warn(
            f"{name} is from {low:g} to {high:g} for {MOST:.0%} of the observations, and {outside:,} of "
            f"{len(column):,} lie far away, from {column.min():g} to {column.max():g}: the network is shown the range "
            "of all, and what varies among the many is lost. Leave those out, or predict them by themselves."
        )
