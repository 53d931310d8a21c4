"""Which columns are covariates."""

from collections.abc import Hashable, Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
from jaxtyping import Bool

from ..inference import Columns
from ..likelihoods import AbstractLikelihood, of_real_numbers
from ..warn import warn
from .extrapolation import Extrapolation
from .grid import require


def columns(covariates: Any, names: Sequence[Hashable], d: int) -> Columns:
    """Which of `d` columns are coordinates, and which are `covariates`: numbers of columns, or some of their `names`.

    **Raises** `ValueError` for columns that are not there, named twice, or all of them; `TypeError` for no list of any.
    """
    chosen = [_column(name, names, d) for name in _listed(covariates)]
    if len({*chosen}) < len(chosen):
        raise ValueError(f"`covariates` must name every column once, got {covariates!r}.")
    places = [i for i in range(d) if i not in chosen]
    if chosen and not places:
        raise ValueError(f"`covariates` must leave a column of coordinates, got {covariates!r} of {d} in all.")
    return Columns(places, chosen)


def _listed(covariates):
    if covariates is None:
        return []
    if isinstance(covariates, str) or not isinstance(covariates, Iterable):
        raise TypeError(f"`covariates` must be a list of columns, by number or name, such as [2]; got {covariates!r}.")
    listed = list(covariates)
    if any(isinstance(one, bool | np.bool_) for one in listed):
        raise TypeError(f"`covariates` must be numbers or names of columns, not a mask such as {covariates!r}.")
    return listed


def _column(name, names, d):
    if isinstance(name, str):
        if not names:
            raise ValueError(f"`covariates` must be numbers of columns where `X` has no names, got {name!r}.")
        require(names, [name], "X")
        return list(names).index(name)
    try:
        column = index(name)
    except TypeError as error:
        raise TypeError(f"`covariates` must be numbers or names of columns, got {name!r} among them.") from error
    if not -d <= column < d:
        raise ValueError(f"`covariates` must be columns of `X`, 0 to {d - 1}; got {column}.")
    return column % d


def refuse_drift(likelihood: AbstractLikelihood) -> None:
    """**Raises** `ValueError` for one that does not predict all real numbers."""
    if not of_real_numbers(likelihood):
        raise ValueError(
            f"What `covariates` say is added to `y`, and {type(likelihood).__name__}, the likelihood of the model, is "
            "not of any real number: leave them out, or make them coordinates."
        )


def warn_of_other_covariates(
    unlike: Bool[np.ndarray, "n p"], names: Sequence[Hashable], total: int | None = None
) -> None:
    """Warns of covariates that are `unlike` those observed, of targets which are all or some of `total`."""
    n, count = len(unlike), int(np.sum(np.any(unlike, axis=1)))
    if count:
        number, about = (n, "") if total is None else (total, "About ")
        which = ", ".join(repr(name) for name, far in zip(names, unlike.T, strict=True) if far.any())
        warn(
            f"{about}{round(count / n * number):,} of {number:,} targets have covariates ({which}) outside the range "
            "of the observed ones by more than a quarter of it: slopes are followed there, right or wrong.",
            Extrapolation,
        )
