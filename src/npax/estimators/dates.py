"""Dates are no numbers. Where each coordinate is scaled by itself the unit that makes them so does not matter;
elsewhere it is the user's to choose."""

from collections.abc import Hashable, Iterable
from datetime import date, timedelta
from typing import Any

import numpy as np


def refuse_dates(columns: Iterable[tuple[Hashable, Any]], where: str) -> None:
    """**Raises** `ValueError` naming the columns that hold dates or durations, with the remedy. `where`: the argument
    or the file that the columns `(name, values [n])` are of."""
    names = ", ".join(repr(name) for name, values in columns if are_dates(values))
    if names:
        raise ValueError(
            f"{where} holds dates or durations (columns {names}) where numbers are needed. Take the time since a date, "
            "in a unit of your choice, the same for observations and targets; for example days: "
            '`days = (dates - start) / np.timedelta64(1, "D")`, where `start` is a date of the same kind. (Durations '
            "need no `start`; periods become dates by `.dt.to_timestamp()`.)"
        )


def refuse_dates_in(table: Any, where: str) -> None:
    """The same for an array `[n]` or `[n d]`, or a table with names."""
    if hasattr(table, "columns") and not hasattr(table, "iloc"):  # of polars: as an array dates would be numbers
        refuse_dates(((name, table[name]) for name in table.columns), where)
        return
    values = _array(table)
    if values.ndim in (1, 2):
        columns = np.atleast_2d(values.T)
        refuse_dates(zip(getattr(table, "columns", range(len(columns))), columns, strict=True), where)


def in_days(values: Any) -> Any:
    """Dates as days since 1970 and durations as days, NaN where there is none; of NumPy's kinds, in memory or lazy.
    What else there may be (other calendars, zones, periods) is left as it is."""
    match _kind(values):
        case "dates":
            return (values - np.datetime64(0, "D")) / np.timedelta64(1, "D")
        case "durations":
            return values / np.timedelta64(1, "D")
    return values


def refuse_other_kinds_of_time(names: Iterable[Hashable], observed: Any, wanted: Any) -> None:
    """**Raises** `ValueError` for what is dates in one table or Dataset and numbers, or durations, in the other."""
    for name in names:
        kinds = [_kind(there[name]) for there in (observed, wanted)]
        if kinds[0] != kinds[1] and None not in kinds:
            raise ValueError(f"{name!r} is {kinds[0]} in `observations` and {kinds[1]} in `target`: give both alike.")


def _kind(values):
    """What they are; None for dates of other kinds than NumPy's."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return {"M": "dates", "m": "durations"}.get(dtype.kind, "numbers")
    return None if are_dates(values) else "numbers"


def are_dates(values: Any) -> bool:
    """Whether any of the values is a date or a duration: of numpy, pandas, the standard library or another calendar."""
    values = _array(values)
    return values.dtype.kind in "mM" or (values.dtype.kind == "O" and any(map(_is_date, values.ravel())))


def _is_date(value):
    return isinstance(value, date | timedelta | np.datetime64 | np.timedelta64) or hasattr(value, "strftime")


def _array(values):
    try:
        return np.asarray(values)
    except (TypeError, ValueError):  # of a list: dates beside numbers
        return np.asarray(values, object)
