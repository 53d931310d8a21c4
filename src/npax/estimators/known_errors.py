"""Known standard errors of observations, in arrays and in columns of tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..warn import warn
from .dates import refuse_dates_in
from .missing import unmasked
from .text import refuse_text

if TYPE_CHECKING:
    import pandas as pd

SOME, TOO_LITTLE = 10, 0.1
"""Values with errors from which on these are compared with what varies; and the share of the squares that they say, at
least. By chance there is less in one of 4,000 tables of so few."""

UNKNOWN = "Where an error is not known leave the row out, or give 0, which says that no noise is known."


def like(y: np.ndarray, error: Any) -> np.ndarray:
    """Known errors in the shape of `y`. **Raises** `ValueError` for another, and for what is no standard deviation
    beside a value."""
    refuse_dates_in(error, "`error`")
    refuse_text(error, "`error`")
    error = np.asarray(unmasked(error), np.float64)
    if error.shape not in ((), y.shape) and not (error.size == y.size == len(y)):
        rule = f"`error` must have the shape of `y`, {y.shape}, or be one number"
        raise ValueError(f"{rule}; got the shape {error.shape}.")
    error = error.reshape(y.shape) if error.ndim else np.full(y.shape, error)
    wrong = _wrong(error, y)
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(y), -1).any(axis=1)))
        raise ValueError(
            "`error` must hold standard deviations, finite and not negative, zero where no noise is known; got "
            f"{error[row]} in row {row}. {UNKNOWN}"
        )
    return error


def joined(error: np.ndarray | None, y: np.ndarray, error_new: np.ndarray | None, y_new: np.ndarray):
    """Known errors of old and new observations: zeros where only the others have any."""
    if error is None and error_new is None:
        return None
    both = ((error, y), (error_new, y_new))
    return np.concatenate([np.zeros_like(values) if given is None else given for given, values in both])


def refuse_no_errors(errors: np.ndarray, values: np.ndarray, names: Sequence[Hashable], rows: pd.Index) -> None:
    """**Raises** `ValueError` naming column and row of what is no standard deviation beside a value, `[rows names]`."""
    for name, column, of_name in zip(names, errors.T, values.T, strict=True):
        wrong = np.flatnonzero(_wrong(column, of_name))
        if len(wrong):
            rule = (
                f"{name!r} of `observations` must hold standard errors, finite, not negative, zero where none is known"
            )
            at = f"got {column[wrong[0]]:g} in row {rows[wrong].tolist()[0]!r}, the first of {len(wrong):,} such."
            raise ValueError(f"{rule}; {at} {UNKNOWN}")


def warn_of_large_errors(y: np.ndarray, error: np.ndarray) -> None:
    """Warns where a column of `y [n dy]` varies far less than errors of the standard deviations `error [n dy]` alone
    would have it: these are of another unit, or no standard deviations of `y`."""
    for i, (values, given) in enumerate(zip(y.T, error.T, strict=True)):
        values, given = values[given > 0], given[given > 0]
        if len(given) < SOME:
            continue
        weights = np.square(given.min() / given)
        deviations = values - np.average(values, weights=weights)
        with np.errstate(over="ignore"):
            ratio = np.mean(np.square(deviations / given))
        if ratio < TOO_LITTLE:
            where = f"column {i} of `y`" if y.shape[1] > 1 else "`y`"
            warn(
                f"`error` is {np.median(given):.3g} (median), and {where} is between {values.min():.4g} and "
                f"{values.max():.4g}: of such errors it would vary more. They must be standard deviations, in the unit "
                "of `y`, not variances or percent."
            )


def _wrong(error, y):
    return ~(np.isfinite(error) & (error >= 0)) & np.isfinite(y)
