"""Dates are no numbers. Where each coordinate is scaled by itself the unit that makes them so does not matter;
elsewhere it is the user's to choose."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import numpy as np

from ..arrow import dates_of_numpy
from ..warn import warn

WRITTEN = re.compile(r"\s*(\d{4}[-/.]\d\d?([-/.]\d\d?)?|\d\d?[-/.]\d\d?[-/.]\d{2,4})([ T]|$)")
"""How a date begins as text."""
MONTHS = 6
"""Different numbers such as 202001 from which on they are months, and not by chance like them."""
Name = TypeVar("Name", bound=Hashable)

SINCE = (
    "Take the time since a date, in a unit of your choice, the same for observations and targets; for example days: "
    '`days = (dates - start) / np.timedelta64(1, "D")`, where `start` is a date of the same kind. (Durations need no '
    "`start`.)"
)
TAKEN = (
    "`npax.interpolate` and `npax predict` take dates and durations of NumPy's as coordinates where `coords` is "
    "'planar' (metres and a date too: 'isotropic' is for columns of one unit), or beside longitude and latitude: "
    "`pandas.to_datetime(dates)`, of a zone `.dt.tz_convert(None)`."
)


def scaled_by_themselves(x: Sequence[Name], coords: str) -> list[Name]:
    """Which of the coordinates `x` may be dates: those that have a scale of their own."""
    return list({"planar": x, "latlon": x[2:]}.get(coords, []))


def refuse_dates(columns: Iterable[tuple[Hashable, Any]], where: str) -> None:
    """**Raises** `ValueError` naming the columns that hold dates or durations, with the remedy. `where`: the argument
    or the file that the columns `(name, values [n])` are of."""
    found = {name: values for name, values in columns if are_dates(values)}
    if found:
        names = ", ".join(map(repr, found))
        first = sorted({_remedy(values) for values in found.values()} - {""})
        remedy = " ".join([*first, TAKEN, f"Elsewhere: {SINCE}"] if first else [SINCE, TAKEN])
        raise ValueError(f"{where} holds dates or durations (columns {names}) where numbers are needed. {remedy}")


def _remedy(values):
    """What makes dates of NumPy's of periods, or of dates of the standard library; "" for others."""
    first = next((value for value in _array(values).ravel() if _is_date(value)), None)
    if hasattr(first, "to_timestamp"):
        return "These are periods: `column.dt.to_timestamp()` makes dates of them."
    if isinstance(first, date) and not isinstance(first, datetime):
        return "These are of `datetime.date`: `pandas.to_datetime(column)` makes dates of them that pandas knows."
    return ""


def refuse_dates_in(table: Any, where: str) -> None:
    """The same for an array `[n]` or `[n d]`, or a table with names."""
    if hasattr(table, "columns") and not hasattr(table, "iloc"):  # of polars: as an array dates would be numbers
        refuse_dates(((name, table[name]) for name in table.columns), where)
        return
    values = _array(table)
    if values.ndim in (1, 2):
        columns = np.atleast_2d(values.T)
        refuse_dates(zip(getattr(table, "columns", range(len(columns))), columns, strict=True), where)


def start_of(values: Any) -> Any:
    """What the dates or durations of a column in memory are counted from, the first of them; None where there is none
    of NumPy's or of another calendar. **Raises** `ValueError` for several calendars."""
    kind = _kind(values)
    if kind in ("dates", "durations"):
        values = np.asarray(values)
        there = values[~np.isnat(values)]
        return there.min() if len(there) else None
    if not of_calendar(values):
        return None
    dates = list(filter(_has_calendar, _array(values).ravel()))
    calendars = sorted({date.calendar for date in dates})
    if len(calendars) > 1:
        raise ValueError(f"Dates of one coordinate must be of one calendar, got {' and '.join(map(repr, calendars))}.")
    return min(dates)


def in_days(values: Any, start: Any) -> Any:
    """Dates or durations, in memory or lazy, as days since a `start` of their kind, NaN where there is none. Whatever
    else they are, or where `start` is None, as they are."""
    if start is None:
        return values
    if _kind(values) in ("dates", "durations"):
        return _days_between(start, values)
    if not of_calendar(values):
        return values
    each = _array(values)
    days = [(date - start) / timedelta(days=1) if _has_calendar(date) else np.nan for date in each.ravel()]
    return np.reshape(np.asarray(days, np.float64), each.shape)


def _days_between(start, values):
    """Whole seconds by themselves, lest the difference of dates in nanoseconds be more than they hold, 292 years."""
    seconds = f"{values.dtype.kind}8[s]"
    whole, first = values.astype(seconds), start.astype(seconds)
    day = np.timedelta64(1, "D")
    return (whole - first) / day + ((values - whole) - (start - first)) / day


def of_calendar(values: Any) -> bool:
    """Whether they are dates of another calendar than NumPy's, such as those of climate models without leap years."""
    if getattr(getattr(values, "dtype", None), "kind", "O") != "O":
        return False  # nor are lazy numbers computed
    values = _array(values)
    return values.dtype.kind == "O" and any(map(_has_calendar, values.ravel()))


def reader_of_dates(values: Any) -> str:
    """What reads a column whose texts are all dates as they are usually written; "" for others."""
    values = [value for value in _array(values).ravel().tolist() if isinstance(value, str)]
    if not values or not all(map(WRITTEN.match, values)):
        return ""
    day_first = all(re.match(r"\d\d?\.", value) for value in values)
    return f"`pandas.to_datetime(column{', dayfirst=True' if day_first else ''})`"


def refuse_other_kinds_of_time(names: Iterable[Hashable], observed: Any, wanted: Any) -> None:
    """**Raises** `ValueError` for what is dates in one table or mapping and numbers, text or durations in the other, or
    dates as text in both."""
    for name in filter(wanted.__contains__, names):
        kinds = [_kind(there[name]) for there in (observed, wanted)]
        reader = reader_of_dates(observed[name]) if kinds == ["text", "text"] else ""
        if reader:
            raise ValueError(f"{name!r} is dates as text in `observations` and `target`: read both by {reader}.")
        if kinds[0] != kinds[1] and None not in kinds:
            readers = {"dates": "to_datetime", "durations": "to_timedelta", "numbers": "to_numeric"}
            reader = next((reader for kind, reader in readers.items() if kind in kinds), "to_datetime")
            remedy = f"read text by `pandas.{reader}`" if "text" in kinds else "give both alike"
            if any("calendar" in str(kind) for kind in kinds) and all("dates" in str(kind) for kind in kinds):
                align = ', align_on="date"' if any("360_day" in str(kind) for kind in kinds) else ""
                convert = f'convert_calendar("standard", dim={name!r}{align})'
                remedy = f"bring both to one calendar, `dataset.{convert}` of a gridded one"
            raise ValueError(f"{name!r} is {kinds[0]} in `observations` and {kinds[1]} in `target`: {remedy}.")


def in_utc(observed: Any, wanted: Any, names: Iterable[Hashable]) -> tuple[Any, Any]:
    """Both, with the dates of time zones in columns `names` of a DataFrame as those of UTC, without one. **Raises**
    `ValueError` where one has a zone and dates of the other have none."""
    for name in names:
        observed, wanted = (_of_numpy(there, name) for there in (observed, wanted))
        zoned = [_has_zone(there, name) for there in (observed, wanted)]
        if all(zoned):
            observed, wanted = (_without_zone(there, name) for there in (observed, wanted))
        elif any(zoned):
            other = wanted if zoned[0] else observed
            other = getattr(other, "variables", getattr(other, "coords", other))
            named = isinstance(other, Mapping) or hasattr(other, "iloc")
            if named and name in other and _kind(other[name]) == "dates":
                raise ValueError(
                    f"{name!r} has a time zone in one of `observations` and `target`, and none in the other: give both "
                    "one (`.dt.tz_localize(zone)`), or take it away (`.dt.tz_convert(None)`, which gives UTC)."
                )
    return observed, wanted


def _of_numpy(table, name):
    """A table whose column is of NumPy's or pandas' own dates where it is of Arrow's."""
    if not (hasattr(table, "iloc") and name in table):
        return table
    column = table[name]
    of_numpy = dates_of_numpy(column)
    if of_numpy is column:
        return table
    table = table.copy(deep=False)
    table[name] = of_numpy
    return table


def _without_zone(table, name):
    table = table.copy(deep=False)
    table[name] = table[name].dt.tz_convert(None)
    return table


def _has_zone(table, name):
    return hasattr(table, "iloc") and name in table and getattr(table[name].dtype, "tz", None) is not None


def warn_of_numbers_like_dates(names: Iterable[Hashable], places: np.ndarray) -> None:
    """Warns where all places `[n d]` of a coordinate are numbers such as 20200131 or, of several years, 202001: between
    the last of a month and the first of the next lie 70 of those, between years 89 of these."""
    for name, column in zip(names, places.T, strict=True):
        known = np.unique(column[np.isfinite(column)])
        days, months = _are_written(known), _are_written(known * 100 + 1)
        if (days and len(known) > 2) or (months and len(known) >= MONTHS and known[-1] // 100 > known[0] // 100):
            last, form = ("month", "%Y%m%d") if days else ("year", "%Y%m")
            warn(
                f"{name!r} holds numbers such as {known[0]:.0f}, which look like dates and are taken for numbers, with "
                f"a jump after each {last}. Make them dates: `pandas.to_datetime(column.astype(int).astype(str), "
                f'format="{form}")`, in a file 2020-01-31.'
            )


def _are_written(numbers):
    """Whether all are such as 20200131."""
    year, month, day = numbers // 10_000, numbers // 100 % 100, numbers % 100
    like_dates = (year >= 1800) & (year < 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return np.all(like_dates & (numbers == np.floor(numbers)))


def _has_calendar(value):
    return hasattr(value, "calendar") and hasattr(value, "strftime")


def _kind(values):
    """What they are; None for dates that are not NumPy's nor of a calendar of their own: of zones, periods."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return {"M": "dates", "m": "durations", "S": "text", "T": "text", "U": "text"}.get(dtype.kind, "numbers")
    if of_calendar(values):
        first = next(filter(_has_calendar, _array(values).ravel()))
        return f"dates of the calendar {first.calendar!r}"
    if are_dates(values):
        return None
    return "text" if any(isinstance(value, str) for value in np.ravel(_array(values))) else "numbers"


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
