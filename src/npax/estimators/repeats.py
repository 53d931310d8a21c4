"""Repeated observations of the same places: taken for that, with a warning, since a coordinate may be missing."""

from collections.abc import Hashable
from typing import Any

from ..warn import warn

REPEATS = 5
"""Observations of each place, and places, from which on a table is likely to lack a coordinate."""


def warn_of_repeats(dataset: Any, x: list[Hashable], ys: list[Hashable]) -> None:
    """Of a Dataset: where `ys` vary along dimensions that none of the coordinates `x` has."""
    spanned = {d for name in x for d in dataset[name].dims}
    others = dict.fromkeys(d for name in ys for d, n in dataset[name].sizes.items() if d not in spanned and n > 1)
    if others:
        along = ", ".join(map(repr, others))
        warn(
            f"`observations` has values along {along}, which `x` = {x} does not name: they are taken for repeated "
            "observations of the same places. Name it in `x`, predict each by itself "
            f"(`.groupby({next(iter(others))!r}).map`), choose one (`.isel`), or average (`.mean({list(others)})`).",
        )


def warn_of_same_places(table: Any, x: list[Hashable], ys: list[Hashable]) -> None:
    """Of a table, whose dimensions do not say that there are repeats: where places `x` come again and again."""
    known = table[[*x, *ys]].dropna()
    n, places = len(known), len(known.drop_duplicates(x))
    if places >= REPEATS and n >= REPEATS * places:
        warn(
            f"`observations` has {n:,} rows at {places:,} places: they are taken for repeated observations of these. "
            "Where they differ in something else, such as time, name it in `x`.",
        )
