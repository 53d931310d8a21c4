"""Averages over regions."""

from typing import Any, NamedTuple

import numpy as np

from .dates import refuse_dates_in
from .missing import unmasked
from .text import refuse_text


class Regions(NamedTuple):
    """What each of the rows of a table counts in regions, `shares [regions n]`, whose sums are 1; `one`: whether there
    is one region, without an axis of its own."""

    shares: np.ndarray
    one: bool

    @classmethod
    def of(cls, weights: Any, n: int) -> "Regions":
        """Of weights `[n]` or `[regions n]`, None for the same. **Raises** `ValueError` for others, for weights that
        are negative or not finite, and for regions without any."""
        if n == 0:
            raise ValueError("`X` must have one row or more: of none there is no average.")
        refuse_dates_in(weights, "`weights`")
        refuse_text(weights, "`weights`")
        given = np.ones(n) if weights is None else np.asarray(unmasked(weights), np.float64)
        if given.ndim not in (1, 2) or given.shape[-1] != n:
            turned = ": transpose them" if given.ndim == 2 and given.shape[0] == n else ""
            raise ValueError(
                f"`weights` must have the shape [n] or [regions n] for {n:,} rows of `X`, got {given.shape}{turned}."
            )
        wrong = ~(np.isfinite(given) & (given >= 0))
        if wrong.any():
            raise ValueError(
                f"`weights` must be finite and not negative, got {given[wrong][0]:g}: how regions differ is told "
                "by the `cov` of several."
            )
        largest = np.atleast_2d(given).max(axis=1, initial=0.0, keepdims=True)
        if not largest.all():
            raise ValueError(
                f"`weights` must not be zero at all rows of `X`, as those of region {int(largest.argmin())}."
            )
        shares = np.atleast_2d(given) / largest
        return cls(shares / shares.sum(axis=1, keepdims=True), given.ndim == 1)

    def like(self, a: np.ndarray, axes: int = 1) -> Any:
        """`a [regions ...]` without the axes of regions where there is one: then a number, if it is of one column."""
        return a[(0,) * axes] if self.one else a
