"""Tables and grids on disk: CSV, Parquet, NetCDF, Zarr. Needs pandas and xarray (`pip install 'npax[geo]'`)."""

import codecs
import warnings
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

try:
    import pandas as pd
    import xarray as xr
except ImportError as error:
    raise ImportError("Tables and grids need pandas and xarray: pip install 'npax[geo]'.") from error

from ..arrow import dates_of_numpy
from ..numeric import Texts, is_number
from ..warn import warn
from .marks import Marks

ZONE = r":\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)$"
"""How a time of day with a zone ends."""
NUMBERS = ("boolean", "integer", "floating", "mixed-integer-float", "decimal")
"""What pandas infers of columns that are numbers, or become numbers."""
DOTTED = "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"
"""How dates are written the day first."""
PIECE = 2**20
"""Bytes that are looked at together."""
LOOKED_AT = 1000
"""Rows whose numbers say how decimals are written."""
SUFFIXES = (".csv", ".parquet", ".nc", ".zarr")


def ending(path: Path) -> str:
    """What the name says of the format, `.CSV` the same as `.csv`."""
    return path.suffix.lower()


def checked_suffix(path: Path) -> Path:
    if ending(path) not in SUFFIXES:
        raise ValueError(f"'{path}' must end in one of {', '.join(SUFFIXES)}: the ending says how to read or write it.")
    return path


def as_names(_: pd.Series, texts: pd.Series) -> pd.Series:
    """Names as they are written: NA is Namibia, and 01001 a code; numbers where all that is written is written as these
    are."""
    written = texts[texts != ""]
    numbers: Any = pd.to_numeric(written, errors="coerce")
    if not len(written) or numbers.dtype.kind not in "if" or not (numbers.astype(str) == written).all():
        return texts
    return numbers if len(written) == len(texts) else numbers.astype(object).reindex(texts.index)


def copied(column: pd.Series, texts: Any) -> pd.Series:
    """What is only copied: numbers as numbers, whole ones beside empty cells too; codes such as 007, and NA among
    words, as they are written."""
    written = texts[texts != ""]
    if not of_numbers(column) or written.str.match(r"[+-]?0\d").any():
        return texts.where(texts != "")
    if column.isna().all():  # of NA all over, or of nothing
        return column if written.str.lower().eq("nan").all() else texts.where(texts != "")
    if column.dtype.kind == "f" and written.str.fullmatch(r"[+-]?\d+").all():
        numbers: Any = pd.to_numeric(written)
        return numbers.astype(object).reindex(texts.index)
    return column


def read(
    path: Path,
    of_names: Callable[[pd.Series], bool] = lambda column: False,
    as_written: Callable[[pd.Series, pd.Series], pd.Series] = as_names,
) -> pd.DataFrame | xr.Dataset:
    """A table (CSV, Parquet) or a dataset (NetCDF, Zarr), whose values stay on disk until they are used. What divides
    the columns of a CSV, and how its decimals are written, it says itself (`Marks`). `of_names`: which columns of it
    are not numbers to compute with; `as_written(column, texts)`: what they become."""
    checked_suffix(path)
    kind = ending(path)
    if not (path.is_dir() if kind == ".zarr" else path.is_file()):
        raise FileNotFoundError(f"There is no {'folder' if kind == '.zarr' else 'file'} '{path}'.")
    if kind in (".nc", ".zarr"):
        return read_grid(path)
    try:
        return _read_csv(path, of_names, as_written) if kind == ".csv" else _with_levels(pd.read_parquet(path))
    except (ValueError, OSError) as error:  # no columns, no table, no text
        raise ValueError(f"'{path}' cannot be read as a table: {error}") from error


def _read_csv(path, of_names, as_written):
    """Without an index: one would be made of the first column where rows end with a comma, and names would shift."""
    encoding = _encoding(path)
    above, names, rows = _first_lines(path, encoding)
    marks = Marks.of(names, rows)
    _refuse_twice([name.strip() for name in marks.cells(names)])
    if above and all(map(is_number, marks.cells(names))):
        raise ValueError(f"below the comments its first line is '{names.strip()}': write the names there, without '#'.")
    rules: dict[str, Any] = {"index_col": False, "skipinitialspace": True, **marks._asdict()}
    with path.open(encoding=encoding, newline="") as file, warnings.catch_warnings():
        for _ in range(above):
            file.readline()
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            table = pd.read_csv(file, **rules).rename(columns=str.strip)
        except pd.errors.ParserWarning as warning:
            raise ValueError(
                "its rows have more values than its first line has names. Name every column, that of row names too."
            ) from warning
    if chosen := [name for name in table if of_names(table[name])]:
        texts = _texts(path, chosen, rules | {"skiprows": above, "encoding": encoding})
        table = table.assign(**{name: as_written(table[name], texts[name]) for name in chosen})
    return table


def _texts(path, names, rules):
    rules = rules | {"usecols": lambda name: name.strip() in names}
    texts = pd.read_csv(path, dtype=str, keep_default_na=False, **rules).rename(columns=str.strip)
    return texts.apply(lambda column: column.str.strip())


def _encoding(path):
    """UTF-8, or, of what is none, that of Windows in the west of Europe. **Raises** `ValueError` for bytes of neither,
    such as those of UTF-16."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while piece := file.read(PIECE):
                if b"\0" in piece:
                    anew = "`iconv -f UTF-16 -t UTF-8 old.csv > new.csv`"
                    raise ValueError(f"it is not written in UTF-8. Write it anew, if it is of UTF-16 by {anew}.")
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            warn(f"'{path}' is not written in UTF-8: its letters are taken for those of Windows (cp1252).")
            return "cp1252"
    return "utf-8-sig"


def _first_lines(path, encoding):
    """How many comments and empty lines stand above, the line of names, and those below it."""
    with path.open(encoding=encoding, errors="replace") as file:
        above, names = 0, file.readline()
        while names.startswith("#") or names.isspace():
            above, names = above + 1, file.readline()
        return above, names, list(islice(file, LOOKED_AT))


def _refuse_twice(names):
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"several of its columns are named '{twice}': give each a name of its own.")


def _with_levels(table):
    """The levels of an index that have names as columns."""
    levels = [name for name in table.index.names if name is not None and name not in table.columns]
    return table.reset_index(levels) if levels else table


def read_grid(path: Path) -> xr.Dataset:
    """A dataset (NetCDF, Zarr), whose values stay on disk until they are used."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'.")
    try:
        return xr.open_dataset(path, engine="zarr" if ending(path) == ".zarr" else None)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"'{path}' cannot be read as a grid: {error}") from error


def as_table(found: pd.DataFrame | xr.Dataset, names: Sequence[str] | None = None) -> pd.DataFrame:
    """A dataset laid out with one row per value of the variables `names` (default: all of them, whose dimensions are
    multiplied: a row for each bound of a cell, say); a table as it is."""
    if isinstance(found, pd.DataFrame):
        return found
    return (found if names is None else found[[*names]]).to_dataframe().reset_index()


def with_dates(found: pd.DataFrame | xr.Dataset, names: Sequence[str]) -> pd.DataFrame | xr.Dataset:
    """A table whose columns `names` are dates where they hold texts such as 2020-01-31, 2020-01-31T12:00 or 31.01.2020
    (the day first); those of a zone are UTC, without one. Anything else, and a dataset, as it is. **Raises**
    `ValueError` where some of a column have a zone and others none."""
    if not isinstance(found, pd.DataFrame):
        return found
    return found.assign(**{name: _as_dates(found[name]) for name in names if name in found.columns})


def of_zones(column: Any) -> bool:
    """Whether the dates of a column, or the texts that write them, have a time zone. **Raises** `ValueError` where some
    have one and others none."""
    if not isinstance(column, pd.Series) or of_numbers(column) or _of_dates(column):
        return False
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return True
    texts = column.dropna().astype(str)
    zoned = texts.str.contains(ZONE)
    if zoned.any() and not zoned.all():
        with_one, without = list(texts[zoned]), list(texts[~zoned])
        raise ValueError(
            f"Column '{column.name}' has times with a zone, such as '{with_one[0]}', and without one, such as "
            f"'{without[0]}': write all of them alike."
        )
    return bool(zoned.any())


def check_columns(
    table: pd.DataFrame | xr.Dataset, names: Sequence[str], path: Path, *, dated: Sequence[str] = ()
) -> None:
    """**Raises** `ValueError` where a column is missing or holds text, dates or durations, or the table has no rows.
    `dated`: those that may hold dates and durations."""
    if isinstance(table, pd.DataFrame) and len(table) == 0:
        raise ValueError(f"'{path}' has no rows.")
    from ..estimators.dates import of_calendar, refuse_dates

    for name in names:
        check_there(table, [name], path)
        may_be = name in dated and (_of_dates(table[name]) or of_calendar(table[name]))
        if not of_numbers(table[name]) and not may_be:
            refuse_dates([(name, _as_dates(table[name]))], f"'{path}'")
            dates = "Dates are written 2020-01-31, 2020-01-31T12:00 or 31.01.2020. " if name in dated else ""
            wrong = _no_dates(table[name]) if dates else ""
            raise ValueError(
                f"Column '{name}' of '{path}' is {wrong or _no_numbers(table[name])}"
                f"{dates}Correct the file, or choose another column."
            )


def check_there(table: pd.DataFrame | xr.Dataset, names: Sequence[str], path: Path) -> None:
    """**Raises** `ValueError` where a column is missing."""
    present = [str(name) for name in (table.columns if isinstance(table, pd.DataFrame) else table.variables)]
    for name in names:
        if name not in present:
            raise ValueError(f"'{path}' has no column '{name}'; it has: {', '.join(present)}.")


def of_numbers(values: Any) -> bool:
    """Whether all of a column or variable are numbers, true or false, or missing."""
    if values.dtype.kind == "O":
        return pd.api.types.infer_dtype(np.ravel(np.asarray(values)), skipna=True) in NUMBERS
    return values.dtype.kind in "biuf"


def _of_dates(values):
    return isinstance(values.dtype, np.dtype) and values.dtype.kind in "mM"


def _as_dates(column):
    """Texts such as 2020-01-31, 2020-01-31T12:00 or 31.01.2020 as the dates that they write; a column of anything else
    as it is."""
    if not isinstance(column, pd.Series):  # of a dataset, in which dates are dates
        return column
    column = dates_of_numpy(column)
    if of_numbers(column) or _of_dates(column) or any(map(is_number, column.dropna().unique())):  # years
        return column
    for form in ("ISO8601", *DOTTED):
        try:
            dates = pd.to_datetime(column, format=form, utc=True).dt.tz_localize(None)
        except (TypeError, ValueError, OverflowError, AttributeError):
            continue
        of_zones(column)
        return dates
    return column


def _no_dates(column):
    """Which texts are none, in a column most of whose texts are."""
    if not isinstance(column, pd.Series):
        return ""
    texts = column.astype(str)
    each = [pd.to_datetime(texts, format=form, utc=True, errors="coerce") for form in ("ISO8601", *DOTTED)]
    dates = max(each, key=lambda dates: dates.notna().sum())
    bad = np.flatnonzero(dates.isna() & column.notna())
    if not len(bad) or 2 * len(bad) > column.count():
        return ""
    first = column.iloc[bad[0]]
    if any(other.iloc[bad].notna().all() for other in each):
        other = column.iloc[np.flatnonzero(dates.notna())[0]]
        of_all = f"of dates that are written in two ways: '{other}' and, in {len(bad):,} of "
        return f"{of_all}{len(column):,} rows, '{first}'. Write all alike. "
    return f"of dates, but for {len(bad):,} of {len(column):,}, first '{first}' in row {bad[0] + 1}. "


def _no_numbers(column):
    """How many texts there are, the first of them, and what to do where most are numbers."""
    texts = Texts.among(column)
    if not texts.rows:
        return "not of numbers. "
    row = f" in row {texts.rows[0] + 1:,}" if isinstance(column, pd.Series) else ""
    found = f"{len(texts.rows):,} of {texts.entries:,} entries are text, the first '{texts.written[0]}'{row}"
    remedy = texts.remedy("Leave cells empty where nothing is known.")
    return f"not of numbers: {found}. {remedy} ".replace("  ", " ")
