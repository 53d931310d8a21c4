"""Dates of Arrow, as pandas' columns hold them."""

from typing import Any


def dates_of_numpy(column: Any) -> Any:
    """A column of pandas, of NumPy's or pandas' own dates or durations where it is of Arrow's; others as they are."""
    of_arrow = getattr(column.dtype, "pyarrow_dtype", None)
    kind = str(of_arrow).partition("[")[0]
    if kind not in ("timestamp", "duration", "date32", "date64"):
        return column
    unit = getattr(of_arrow, "unit", "s")  # of nanoseconds there are but 584 years
    zone = column.dt.tz if kind == "timestamp" else None
    of_numpy = f"timedelta64[{unit}]" if kind == "duration" else f"datetime64[{unit}]"
    return column.astype(of_numpy if zone is None else f"datetime64[{unit}, {zone}]")
