"""Units that observations and targets say they are in."""

import re
from collections.abc import Hashable, Sequence
from typing import Any

from ..warn import warn

SPELLINGS = {
    "degree": r"(deg|degs|degree|degrees|°)([_ ]?(n|e|north|east))?|degrees?[_ ]?t(rue)?",
    "m": r"met(er|re)s?",
    "km": r"kilomet(er|re)s?",
    "k": r"kelvins?|degrees?[_ ]?k(elvin)?",
    "s": r"secs?|seconds?",
    "h": r"hrs?|hours?",
    "d": r"days?",
}
"""Other words for some units, in small letters."""


def warn_of_other_units(names: Sequence[Hashable], observations: Any, target: Any) -> None:
    """Warns of columns that both have, tables or whatever has them by name, and that by their attributes `units` are
    not of one unit: what is in metres on one side and in kilometres on the other is read as far away, and nobody would
    know."""
    for name in names:
        of_each = [_unit(columns, name) for columns in (observations, target)]
        if None not in of_each and len({_plain(unit) for unit in of_each}) > 1:
            warn(
                f"{name!r} is in {of_each[0]!r} in `observations` and in {of_each[1]!r} in `target`, by their "
                "attributes `units`, and numbers are taken as they are: bring both to one unit."
            )


def _unit(columns, name):
    about = getattr(columns[name], "attrs", {}) if name in columns else {}
    unit = about.get("units")
    return unit if isinstance(unit, str) and unit.strip() else None


def _plain(unit):
    small = unit.strip().lower()
    return next((plain for plain, words in SPELLINGS.items() if re.fullmatch(words, small)), small)
