"""Scores of predictions where places come with values of their own."""

from typing import Any, NamedTuple

import numpy as np

from ._process import err


class Scored(NamedTuple):
    """What is scored: values `y`, with known errors of a column; of the function alone, without `noise`; or counts of
    an exposure that a column holds; or values whose predictions are log-normal."""

    y: str
    error: str | None
    noise: bool
    counts: Any  # npax.counts, or None
    exposure: str | None
    lognormal: bool = False


def print_scores(of: Scored, prediction, target, observed) -> None:
    """Prints the scores of a `prediction` at the places of `target`, if this has values; `observed`: the table of
    places and values that it was made from."""
    if of.y not in target or (of.exposure is not None and of.exposure not in target):
        return
    from .tables import as_table, of_numbers, with_floats

    mean, std = (prediction[f"{of.y}_{moment}"] for moment in ("mean", "std"))
    try:
        truth = target[of.y].transpose(*mean.dims) if hasattr(target, "data_vars") else target[of.y]
    except ValueError:
        truth = None
    if truth is None or not of_numbers(truth):
        err.print(
            f"{of.y} of the places is not of numbers, or has other dimensions: the prediction is not scored on it.",
        )
        return
    units = [values.attrs.get("units") for values in (mean, truth)]
    if None not in units and units[0] != units[1]:
        err.print(f"{of.y} is in {units[0]} in the observations and in {units[1]} at the places: scores mix the two.")
    beside = None if (of.error or of.exposure) is None else _beside(of.error or of.exposure, target, mean)
    truth, mean, std = (np.asarray(values, float).ravel() for values in (truth, mean, std))
    known = np.isfinite(truth) & np.isfinite(mean)  # where a coordinate is missing nothing is predicted
    if of.counts is not None and beside is not None:
        known &= np.isfinite(beside)
    if not known.any():
        return
    try:
        scores = _scores(of, *(a if a is None else a[known] for a in (truth, mean, std, beside)))
    except ValueError as problem:
        err.print(f"The prediction is not scored on {of.y} of the places: {problem}")
        return
    taken = "" if of.noise else " (taken for the function's own, without noise)"
    what = "values" if of.counts is None else "counts"
    err.print(
        f"scores of {of.y} on {known.sum():,} {what}{taken}: " + ", ".join(f"{k} {v:.4g}" for k, v in scores.items())
    )
    names = list(observed)
    given = with_floats(as_table(target, names), names).merge(observed.dropna().drop_duplicates(), on=names)
    if len(given):
        err.print(f"{len(given):,} of them are observations that the prediction was made from: no test of it.")


def _beside(name, target, mean):
    """A column of the places, at each value; None where there is none."""
    if name not in target:
        return None
    column = target[name]
    if hasattr(target, "data_vars"):
        column = column.broadcast_like(mean).transpose(*mean.dims)
    return np.asarray(column, float).ravel()


def _scores(of, truth, mean, std, beside):
    from .. import counts, metrics
    from ..estimators import lognormal

    if of.lognormal:
        _, error = lognormal.logarithms(truth, None if beside is None else np.nan_to_num(beside))
        mean, std = lognormal.LOG.of_moments(mean, std)
        return lognormal.score_report(truth, mean, std if error is None else np.hypot(std, error))
    if of.counts is None:
        std = std if beside is None else np.hypot(std, np.nan_to_num(beside))
        return metrics.score_report(truth, mean, std)
    exposure = np.ones_like(truth) if beside is None else beside
    of.counts.refuse_impossible(truth, exposure)
    return counts.score_report(of.counts, truth, exposure, *of.counts.of_moments(mean, std))
