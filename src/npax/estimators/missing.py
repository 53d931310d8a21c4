"""Coordinates have to be there; values may be missing, and are NaN then."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from ..arrays import floats, with_nan
from ..warn import warn
from .text import refuse_text

MARKS = ("_FillValue", "missing_value", "nodata")
"""Attributes that say which number stands for what is missing (the last of rasters); decoding makes it NaN, and takes
them away."""
STORED = (-32768.0, -32767.0, 32767.0)
"""Numbers of 16 bits that files of packed values have for what is missing."""
ENDLESS = (*(float(f"1e{power}") for power in range(20, 38)), 9.96921e36)
"""The same of values that are not packed."""
LONG = 98.0
"""Beyond it a number of nines is told by how far it is from others; -9 only where no other is negative."""


def refuse_missing(
    values: np.ndarray, names: Iterable[Hashable], where: str, remedy: str = "Leave these rows out."
) -> None:
    """**Raises** `ValueError` naming the columns of `values [n d]` that hold NaN or infinity. `where`: the argument
    that they are of."""
    bad = np.array(~np.isfinite(values))
    if bad.any():
        rows = f"{np.sum(bad.any(axis=1)):,} of {len(bad):,} rows"
        columns = ", ".join(repr(name) for name, column in zip(names, bad.T, strict=True) if column.any())
        raise ValueError(f"{where} contains NaN or infinity in {rows} (columns {columns}). {remedy}")


def refuse_undecoded(variable: Any, name: Hashable, where: str) -> None:
    """**Raises** `ValueError` where an array of xarray's is packed by its own attributes, or, in memory, holds the
    number that by them stands for what is missing."""
    scale, offset = (
        str(np.ravel(variable.attrs.get(name, usual))[0])  # files have texts there, and arrays of one
        for name, usual in (("scale_factor", 1), ("add_offset", 0))
    )
    if scale not in ("1", "1.0") or offset not in ("0", "0.0"):
        raise ValueError(
            f"{where} holds {name!r} packed, by its attributes `scale_factor` and `add_offset`: {scale} times its "
            f"numbers and {offset} are the values. Decode it, `xarray.decode_cf(...)`."
        )
    if not variable.chunks:
        refuse_marks(variable.to_numpy(), variable.attrs, name, where)


def refuse_marks(values: np.ndarray, attributes: Mapping[str, Any], name: Hashable, where: str) -> None:
    """**Raises** `ValueError` where there are numbers among the values that by their attributes stand for what is
    missing."""
    for attribute in filter(attributes.__contains__, MARKS):
        mark = np.atleast_1d(attributes[attribute])
        as_stored = mark.astype(values.dtype) if values.dtype.kind == "f" and mark.dtype.kind in "fiu" else mark
        count = np.count_nonzero(np.isin(values, as_stored[mark == mark]))
        if count:
            raise ValueError(
                f"{where} holds {mark[0]:g}, its attribute `{attribute}`, {count:,} times in {name!r}: what is missing "
                f"must be NaN. Decode it, `xarray.decode_cf(...)`, or take `field.where(field != {mark[0]:g})`."
            )


def unmasked(a: Any) -> Any:
    """An array or a table, what is masked in it being missing."""
    return floats(a) if np.ma.isMaskedArray(a) else with_nan(a)


def warn_of_codes(columns: Mapping[str, np.ndarray], coordinates: bool = False) -> None:
    """Warns where the least or the largest of the values `[n]` of a column is a number that often stands for what is
    missing: such as -999, and farther from all others than half of it, and than these are from one another; or such as
    -9, and no other is negative (but of `coordinates`, of which one may be)."""
    for name, values in columns.items():
        for code in {values.min(), values.max()} if values.size else ():
            others = values[values != code]
            if not (_is_code(code) and others.size):
                continue
            low, high = others.min(), others.max()
            far = abs(code) > LONG and max(low - code, code - high) > max(high - low, abs(code) / 2)
            if far or (code < 0 <= low and not coordinates):
                times = np.count_nonzero(values == code)
                beside = f"far from all others ({low:.4g} to {high:.4g})" if far else "and no other is negative"
                warn(
                    f"{name} holds {code:.7g}, {times:,} of {values.size:,} values, {beside}: if it stands for what is "
                    "missing, make it NaN or leave these rows out."
                )


def _is_code(number):
    digits = f"{abs(number):.7g}".replace(".", "")
    endless = np.isclose(abs(number), ENDLESS, rtol=1e-6).any()
    return endless or number in STORED or (abs(number) >= 9 and set(digits) == {"9"})


def finite_rows(y: Any) -> np.ndarray:
    """Of which rows of `y [n]` or `[n dy]` all values are finite. **Raises** `ValueError` for text."""
    refuse_text(y, "`y`")
    return np.all(np.isfinite(np.asarray(y, np.float64)).reshape(len(y), -1), axis=1)
