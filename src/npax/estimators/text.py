"""Text, or complex numbers, where real ones are expected."""

import itertools
from typing import Any

import numpy as np

from ..numeric import is_number


def refuse_text(given: Any, name: str) -> None:
    """**Raises** `ValueError` for text, also where it could be read as numbers, and for complex numbers."""
    columns = {f"column {c!r} of {name}": given[c] for c in getattr(given, "columns", ())} or {name: given}
    for where, column in columns.items():
        values = np.asarray(column)
        if values.dtype.kind == "c":
            remedy = "give real and imaginary parts as columns, `.real` and `.imag`, or the modulus, `numpy.abs`"
            raise ValueError(f"Complex data not supported: {where} is of {values.dtype}; {remedy}.")
        texts = values.ravel() if values.dtype.kind in "OSTU" else ()
        found = [value for value in texts if isinstance(value, str | bytes)]
        if found:
            text = str(next(itertools.filterfalse(is_number, found), found[0]))
            raise ValueError(f"{where} must be numbers, got {text!r}. Convert it, encode it or leave it out.")
