"""What divides the columns of a CSV, and how its decimals are written: it says so itself."""

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

SPACES = r"\s+"
DECIMALS = r"[+-]?\d*{}\d+(?:[eE][+-]?\d+)?"
THOUSANDS = r"[+-]?[1-9]\d{0,2},\d{3}"
"""Whole numbers, if their comma is one of thousands."""


class Marks(NamedTuple):
    """What divides the columns of a CSV, and what the decimals of its numbers begin with."""

    sep: str
    decimal: str

    @classmethod
    def of(cls, names: str, rows: Sequence[str]) -> "Marks":
        """Commas and points; or semicolons, tabs or spaces, if these divide the line of names, and then the decimal
        commas of the numbers in its first `rows`. **Raises** `ValueError` where these could be of thousands."""
        commas = names.count(",")
        spaced = commas == 0 and len(names.split()) == len("".join(rows[:1]).split()) > 1
        divided = {";": names.count(";") > commas, "\t": names.count("\t") > commas, SPACES: spaced}
        sep = next((mark for mark, divides in divided.items() if divides), ",")
        plain = cls(sep, ".")
        if sep == ",":
            return plain
        cells = [cell.strip(' "\r\n') for row in rows for cell in re.split(sep, row)]
        with_comma = [cell for cell in cells if re.fullmatch(DECIMALS.format(","), cell)]
        if not with_comma or any(re.fullmatch(DECIMALS.format(r"\."), cell) for cell in cells):
            return plain
        if sep != ";" and all(re.fullmatch(THOUSANDS, cell) for cell in with_comma):
            raise ValueError(
                f"'{with_comma[0]}' could be a decimal comma or one of thousands. Write it anew: "
                f"`pandas.read_csv(path, sep={sep!r}, decimal=',').to_csv(path, index=False)`, or with `thousands=','`."
            )
        return cls(sep, ",")

    def cells(self, line: str) -> list[str]:
        """What stands in the columns of a line."""
        return line.split() if self.sep == SPACES else next(csv.reader([line], delimiter=self.sep), [])
