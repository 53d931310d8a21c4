"""Coordinates have to be there; values may be missing."""

from collections.abc import Hashable, Iterable

import numpy as np


def refuse_missing(values: np.ndarray, names: Iterable[Hashable], where: str) -> None:
    """**Raises** `ValueError` naming the columns of `values [n d]` that hold NaN or infinity. `where`: the argument
    that they are of."""
    bad = np.array(~np.isfinite(values))
    if bad.any():
        rows = f"{np.sum(bad.any(axis=1)):,} of {len(bad):,} rows"
        columns = ", ".join(repr(name) for name, column in zip(names, bad.T, strict=True) if column.any())
        raise ValueError(f"{where} contains NaN or infinity in {rows} (columns {columns}). Leave these rows out.")
