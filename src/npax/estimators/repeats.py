"""Repeated observations of the same places: taken for that, with a warning, since a coordinate may be missing."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..warn import warn

MOSTLY, FEW = 0.9, 10
"""The share of repeated places where values are repeated too, from which on they are copies, not measured again; and
different values that may come often."""
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


def warn_of_copies(X: np.ndarray, y: np.ndarray) -> None:
    """Of rows `[n d]` and their values `[n dy]`: where nearly all that are at the place of others have their values,
    too, and these are not a few that come often, such as no rain."""
    values = y.reshape(len(X), -1)
    order = np.lexsort((*values.T, *X.T))
    other_place, other_value = (np.any(a[order][1:] != a[order][:-1], axis=1) for a in (X, values))
    repeated, copied = np.count_nonzero(~other_place), values[order][1:][~np.logical_or(other_place, other_value)]
    copies = len(copied)
    if copies < REPEATS or copies < MOSTLY * repeated:
        return
    if len(np.unique(copied, axis=0)) > min(FEW, copies / 2):
        warn(
            f"{copies:,} of {len(X):,} observations are copies of others, place and value: each counts as one more, "
            "and intervals are too narrow if it is none. Leave copies out (`table.drop_duplicates()`)."
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
