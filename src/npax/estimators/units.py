"""Units that observations and targets say they are in."""

import re
from collections.abc import Hashable, Sequence
from typing import Any

from ..warn import warn

KNOWN = {
    "degree": r"°|º|(?i:deg(ree)?s?\.?([_ ]?(n|e|north|east|true))?)",
    "m": r"m|(?i:met(er|re)s?)",
    "km": r"km|(?i:kilomet(er|re)s?)",
    "K": r"K|(?i:(deg(ree)?s?[_ ]?)?k(elvins?)?)",
    "degree Celsius": r"C|[°º]C|(?i:(deg(ree)?s?[_ ]?)?c(elsius)?)",
    "s": r"s|(?i:sec(ond)?s?)",
    "min": r"(?i:min(ute)?s?)",
    "h": r"h|(?i:hrs?|hours?)",
    "day": r"d|(?i:days?)",
    "year": r"(?i:yrs?|years?)",
    "Pa": r"Pa",
    "hPa": r"hPa|mbar|(?i:millibars?)",
    "dbar": r"(?i:dbar|decibars?)",
}
"""Units that are told apart, and how they are written; of others nothing is said."""


def warn_of_other_units(names: Sequence[Hashable], observations: Any, target: Any) -> None:
    """Warns of columns that both have, by name, and that by their attributes `units` are not of one unit: what is in
    metres on one side and in kilometres on the other is read as far away, and nobody would know."""
    for name in names:
        of_each = [_unit(columns, name) for columns in (observations, target)]
        if None not in of_each and of_each[0] != of_each[1]:
            warn(
                f"{name!r} is in {of_each[0]} in `observations` and in {of_each[1]} in `target`, by their attributes "
                "`units`, and numbers are taken as they are: bring both to one unit."
            )


def _unit(columns, name):
    """The unit of a column, None where it is not told or known; columns of tables have the attributes of the table."""
    if hasattr(columns, "iloc") or name not in columns:
        return None
    written = str(getattr(columns[name], "attrs", {}).get("units")).strip()
    return next((unit for unit, words in KNOWN.items() if re.fullmatch(words, written)), None)
