"""Text that is a number, and text among numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


def is_number(given: Any) -> bool:
    """Whether `float` takes it: numbers, and text that is one."""
    try:
        float(given)
    except (TypeError, ValueError):  # dates, other text
        return False
    return True


class Texts(NamedTuple):
    """The entries of a column that are text, and no numbers: their `rows`, from 0, and what is written there; how many
    `numbers` there are beside them, and `entries` in all."""

    rows: list[int]
    written: list[str]
    numbers: int
    entries: int

    @classmethod
    def among(cls, column: Any) -> Texts:
        values = np.asarray(column, object).ravel().tolist()
        texts = {row: str(v) for row, v in enumerate(values) if isinstance(v, str | bytes) and not is_number(v)}
        numbers = sum(is_number(value) and not np.isnan(float(value)) for value in values)
        return cls([*texts], [*texts.values()], numbers, len(values))

    def remedy(self, missing: str) -> str:
        """What to do where most entries are numbers, or would be but for their commas; "" elsewhere. `missing`: how to
        have nothing in the place of a text."""
        limits = [text for text in self.written if text.strip().startswith(("<", ">"))]
        commas = [text for text in self.written if _has_decimal_comma(text.strip("<>=~ "))]
        others = {*self.written} - {*limits} - {*commas}
        if not self.written or 2 * (self.numbers + len(commas)) < self.numbers + len(self.written):
            return ""
        remedies = {
            "Of what is below a limit of detection half of the limit is usual, or NaN.": limits,
            'Decimal commas are read by `pandas.read_csv(..., decimal=",")`, those of thousands by `thousands=","`.': (
                commas
            ),
            missing: others,
        }
        return " ".join(remedy for remedy, texts in remedies.items() if texts)


def _has_decimal_comma(text):
    return "," in text and is_number(text.replace(",", ".", 1))
