"""Many values that are one, such as no rain."""

from collections.abc import Hashable

import numpy as np

from ..warn import warn

SHARE, FEWEST, OTHERS = 0.25, 10, 3
"""The share of the values that are the least of them, and their number, from which on it is told; and how many
different ones there are beside it, lest they be classes."""


def warn_of_a_pile(values: np.ndarray, name: Hashable) -> None:
    """Warns where many of the values `[n]` are the least of them, and quantiles and probabilities would be those of a
    normal distribution."""
    known = values[np.isfinite(values)]
    low = known.min(initial=np.inf)
    count = np.count_nonzero(known == low)
    if count < FEWEST or count <= SHARE * len(known) or len(np.unique(known)) <= OTHERS:
        return
    of_amounts = " with `lognormal=True`" if low >= 0 else ""
    warn(
        f"{count:,} of {len(known):,} values of {name!r} are {low:g}, the least of them: predictions are normal "
        "distributions, which know no such share, and probabilities and quantiles near it are off. Predict by itself "
        "whether a value is larger (`npax.interpolate` of zeros and ones with `counts=npax.counts.Binomial()`), and "
        f"those that are, without the others{of_amounts}."
    )
