"""Repeated observations of the same places: taken as they are, with a warning that says what is better."""

from collections.abc import Hashable
from typing import Any

from ..warn import warn

REPEATS = 5
"""Observations of each place, and places, from which on averages are the better observations: with 5 to 20 at 5 to 200
places the noiseless function had a log-likelihood that was better by 0.05 to 0.6 for each target, the more the noise.
Of 40 places with 2 to 19 values each, noise as strong as the field, averages gained 1 (line) and 6 % of CRPS (plane),
with standard errors from the deviations at all places 15 and 12 %, with those of each place by itself 7 and 8 %.
"""


def warn_of_repeats(dataset: Any, x: list[Hashable], ys: list[Hashable]) -> None:
    """Of a Dataset: where `ys` vary along dimensions that none of the coordinates `x` has."""
    spanned = {d for name in x for d in dataset[name].dims}
    others = dict.fromkeys(d for name in ys for d, n in dataset[name].sizes.items() if d not in spanned and n > 1)
    if others:
        along = ", ".join(map(repr, others))
        warn(
            f"`observations` has values along {along}, which `x` = {x} does not name: they are taken for repeated "
            "observations of the same places. Name it in `x`, choose one (`.isel`), or average them "
            f"(`.mean({list(others)})`), by which the noiseless function is known better at other places.",
        )


def warn_of_same_places(table: Any, x: list[Hashable], ys: list[Hashable]) -> None:
    """Of a table, whose dimensions do not say that there are repeats: where places `x` come again and again."""
    known = table[[*x, *ys]].dropna()
    n, places = len(known), len(known.drop_duplicates(x))
    if places >= REPEATS and n >= REPEATS * places:
        warn(
            f"`observations` has {n:,} rows at {places:,} places. Where they differ in something else, such as time, "
            "name it in `x`. Where they are repeats, and other places are asked for, average them first, which makes "
            "predictions of the noiseless function better and surer, and most so with standard errors, `error`: the "
            "standard deviation of all repeats around their averages over the root of their number at each place. "
            f"`observations.groupby({x}, as_index=False)[{ys}].mean()` (the noise is that of averages then). For these "
            "very places leave them as they are.",
        )
