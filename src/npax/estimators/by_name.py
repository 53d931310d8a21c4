"""Observations and places whose columns have names: what `interpolate` and `average` have in common."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from ..arguments import instance, true_or_false
from ..arrays import with_nan
from ..counts import AbstractCounts
from ..inference import coordinates
from ..links import Link
from ..numeric import Texts
from ..training import AbstractGaps
from ..warn import warn
from .counts import CountRegressor, refuse_impossible, where_asked
from .dates import (
    in_days,
    in_utc,
    reader_of_dates,
    refuse_dates,
    refuse_other_kinds_of_time,
    scaled_by_themselves,
    start_of,
    warn_of_numbers_like_dates,
)
from .degrees import refuse_latitude_first, warn_of_degrees
from .grid import Grid, require
from .known_errors import refuse_no_errors
from .lognormal import LOG, LogNormalRegressor
from .missing import refuse_missing
from .options import model_of
from .sampled import only_of_the_target, sampled, with_itself, without_unread
from .sklearn import DroppedRows, NeuralProcessRegressor
from .table import (
    as_table,
    is_lazy_table,
    is_table,
    named,
    refuse_levels_of_columns,
    refuse_other_kinds,
    with_levels,
)
from .text import refuse_text
from .units import warn_of_other_units

Fitted = NeuralProcessRegressor | CountRegressor | LogNormalRegressor


OF_FUNCTIONS = (
    *("x", "y", "covariates", "error", "counts", "exposure", "lognormal", "coords", "include_noise", "quantiles"),
    *("above", "finetune", "gaps", "store", "by", "weights"),
)
"""Arguments of `interpolate` or `average` that are no options of the estimator."""


class Names(NamedTuple):
    """What the columns of observations are: coordinates `x`, then `covariates`, values `ys`; `errors`: of each of
    `ys`, or none; `exposure`: of counts, or None."""

    x: list[Hashable]
    covariates: list[Hashable]
    ys: list[Hashable]
    errors: list[Hashable]
    exposure: Hashable | None

    @classmethod
    def of(cls, observations, x, y, covariates, error, exposure) -> Names:
        """**Raises** `ValueError` for names that are given twice or not at all, `TypeError` for what is no name."""
        if hasattr(error, "shape") or isinstance(error, float):
            raise TypeError(
                "`error` is a name here: add the standard errors to `observations`, and give their column's name."
            )
        if hasattr(exposure, "shape") or isinstance(exposure, float | list):
            raise TypeError(
                "`exposure` is one name here: add exposures to `observations`, and give their column's name."
            )
        for argument, given in (("x", x), ("y", y), ("covariates", covariates)):
            if _are_values(given):
                where = "`observations`" if argument == "y" else "`observations` and `target`"
                raise TypeError(
                    f"`{argument}` takes names here: add the values to {where}, and give what they are called."
                )
        x = listed(x)
        ys = _names_of_values(y, observations, x)
        errors, covariates = ([] if names is None else listed(names) for names in (error, covariates))
        for argument, names in (("x", x), ("y", ys)):
            if not names:
                raise ValueError(f"`{argument}` must name at least one column, got {names}.")
        if len({*x, *ys, *covariates}) < len(x) + len(ys) + len(covariates):
            beside = f", covariates={covariates}" if covariates else ""
            raise ValueError(f"`x`, `y` and `covariates` must name every column once, got x={x}, y={ys}{beside}.")
        if errors and (len(errors) != len(ys) or {*errors} & {*x, *ys, *covariates}):
            raise ValueError(f"`error` must name a column for each of `y`, {ys}, and none of the others; got {errors}.")
        return cls(x, covariates, ys, errors, exposure)

    @property
    def columns(self) -> list[Hashable]:
        return [*self.x, *self.covariates]


class ByName(NamedTuple):
    """Observations by name, as numbers: `places [n d]` and `values [n dy]`, their standard errors `known [n dy]` if
    these are, `exposure [n]`; `attributes` of each of `ys`; `link`: what counts these are, `LOG` where they are
    log-normal, or None.

    `regressor`: not fitted yet; `wanted [m d]`: the places to predict at where they are in a table, `grid`: on a grid.
    `told`: whether somebody wants to hear of missing values, as nobody does of the gaps of a grid.
    """

    names: Names
    link: Link | None
    regressor: NeuralProcessRegressor
    places: np.ndarray
    values: np.ndarray
    known: np.ndarray | None
    exposure: np.ndarray
    attributes: Mapping[Hashable, Mapping[str, Any]]
    wanted: np.ndarray | None
    grid: Grid | None
    told: bool

    @classmethod
    def of(
        cls,
        observations: Any,
        target: Any,
        names: Names,
        *,
        link: Link | None,
        coords: str,
        finetune: int,
        gaps: AbstractGaps | None,
        **options,
    ) -> ByName:
        """**Raises** what `interpolate` says, all but for the target's values before anything is computed."""
        if is_lazy_table(target):
            raise TypeError(
                "`target` must be in memory where it is a table, got a dask DataFrame: pass `target.compute()`. "
                "Of xarray's kinds lazy ones are answered lazily."
            )
        for where, given in (("observations", observations), ("target", target)):
            refuse_levels_of_columns(given, where)
        coordinates(coords)
        if coords == "latlon":
            refuse_latitude_first(names.x)
        counts = link if isinstance(link, AbstractCounts) else None
        _check_counts(names, counts, finetune, gaps)
        if link is LOG and len(names.ys) > 1:
            raise ValueError(f"`lognormal` takes one column `y`, got {names.ys}: predict them one by one.")
        _check_options(options)
        x, columns, ys = names.x, names.columns, names.ys
        beside = names.errors + ([] if names.exposure is None else [names.exposure])
        reg = NeuralProcessRegressor(coords=coords, covariates=[*range(len(x), len(columns))], **options)
        dated = scaled_by_themselves(x, coords) if reg.normalize else []  # elsewhere the unit of time matters
        target = with_itself(target, names.covariates)
        others = only_of_the_target(names.covariates, observations, target)
        own = [name for name in columns if name not in others]
        table, attributes = as_table(observations, own, ys, beside, summed=counts is not None)
        _refuse_nothing(table)
        places_asked = with_levels(target, columns) if is_table(target) else target
        for there, where in ((table, "observations"), (places_asked, "target")):
            if is_table(there):
                refuse_twice(there, [name for name in columns if name in there.columns], where)
        table, places_asked = in_utc(table, places_asked, dated)
        refuse_other_kinds_of_time(dated, table, named(places_asked))
        warn_of_other_units(columns, named(observations), named(target))
        starts = [start_of(table[name]) if name in dated else None for name in columns]
        grid = None if is_table(target) else Grid.of(target, columns, starts)
        table = _with_days(table, columns, starts)
        places, values = numbers_of(table, own, "observations"), numbers_of(table, ys, "observations")
        of_each = np.ones(len(values))
        if names.exposure is not None:
            of_each = numbers_of(table, [names.exposure], "observations")[:, 0]
        if counts is not None:
            values[:, 0] = where_asked(values[:, 0], of_each)
            refuse_impossible(counts, values[:, 0], of_each)
        there = np.isfinite(places).all(axis=1) | np.isfinite(values).any(axis=1)  # of swaths, what has a place
        told = is_table(observations) or reg.on_missing == "raise"
        if not told:
            there &= ~np.isnan(values).all(axis=1)
        places, values = places[there], values[there]
        known = numbers_of(table, names.errors, "observations")[there] if names.errors else None
        if known is not None:
            refuse_no_errors(known, values, names.errors, table.index[there])
        _refuse_nothing(places)
        of_covariates = grid is not None and np.isfinite(places[:, : len(x)]).all()
        or_else = ", or the column: what only `target` has is read off there" if of_covariates else ""
        refuse_missing(places, own, "`observations`", f"Leave these rows out{or_else}.")
        of_each, index = of_each[there], table.index[there]
        if grid is not None and others:
            at, axes = dict(zip(x, places.T, strict=False)), dict(zip(columns, grid.axes, strict=True))
            read = sampled(at, others, axes, around=x[0] if coords == "latlon" else None)
            there = without_unread(read, others, index, drop=reg.on_missing == "drop")
            places = np.concatenate([places, read.values], axis=1)[:, [[*own, *others].index(name) for name in columns]]
            places, values, of_each = places[there], values[there], of_each[there]
            known = None if known is None else known[there]
        if coords != "latlon":
            warn_of_degrees(x, places)
        first = 2 if coords == "latlon" else 0
        warn_of_numbers_like_dates(x[first:], places[:, first : len(x)])
        wanted = None
        if grid is None:
            require(places_asked.columns, columns, "target")
            wanted = numbers_of(_with_days(places_asked, columns, starts), columns, "target")
            refuse_missing(wanted, columns, "`target`")
        if counts is not None:
            attributes = {
                name: {"long_name": f"the rate of {attributes.get(name, {}).get('long_name', name)}"} for name in ys
            }
        return cls(names, link, reg, places, values, known, of_each, attributes, wanted, grid, told)

    def parts(self) -> list[ByName]:
        """All of `ys` together; or one by one, each with the places where it is known, if these differ and the model
        predicts one column. **Raises** `ValueError` for one of which no value is known."""
        missing = ~np.isfinite(self.values)
        together = (missing == missing[:, :1]).all()
        if together or model_of(self.regressor.model, self.regressor.normalize).likelihood.dy > 1:
            return [self]
        empty = [repr(name) for name, lost in zip(self.names.ys, missing.T, strict=True) if lost.all()]
        if empty:
            raise ValueError(f"`observations` holds no value of {', '.join(empty)}: leave it out of `y`.")
        return [self._only(i) for i in range(len(self.names.ys))]

    def _only(self, i):
        there = np.isfinite(self.values[:, i])
        if self.regressor.on_missing == "raise":  # by `fit`
            there = np.ones_like(there)
        lost = np.sum(~there) if self.told else np.sum(np.isinf(self.values[:, i]))
        if lost:
            rows = f"{lost} of {len(there)} rows of {self.names.ys[i]!r} hold NaN or infinity"
            warn(f"{rows}; they are left out.", DroppedRows)
        return self._replace(
            names=self.names._replace(ys=self.names.ys[i : i + 1], errors=self.names.errors[i : i + 1]),
            places=self.places[there],
            values=self.values[there, i : i + 1],
            known=None if self.known is None else self.known[there, i : i + 1],
            exposure=self.exposure[there],
        )

    def fit(self, finetune: int, gaps: AbstractGaps | None) -> Fitted:
        """The fitted estimator, of the kind of the values."""
        options = {"error": self.known, "finetune": finetune, "gaps": gaps}
        if isinstance(self.link, AbstractCounts):
            fitted = CountRegressor(self.link, self.regressor)
            fitted.fit(self.places, self.values[:, 0], exposure=self.exposure)
        elif self.link is LOG:
            fitted = LogNormalRegressor(self.regressor).fit(self.places, self.values[:, 0], **options)
        else:
            fitted = self.regressor.fit(self.places, self.values, **options)
        of_levels(fitted)._names = self.names.columns
        return fitted


def link_of(counts: Any, lognormal: Any) -> Link | None:
    """**Raises** `TypeError` for what are no counts, `ValueError` where both are given."""
    true_or_false(lognormal=lognormal)
    if counts is None:
        return LOG if lognormal else None
    instance(AbstractCounts, counts=counts)
    if lognormal:
        raise ValueError(f"`counts` have distributions of their own, got `lognormal` beside {counts}: leave one out.")
    return counts


def of_levels(fitted: Fitted) -> NeuralProcessRegressor:
    """The regressor of what is predicted as normal: itself, or that of levels of counts or of logarithms."""
    return fitted if isinstance(fitted, NeuralProcessRegressor) else fitted.regressor_


def listed(names: Any) -> list[Hashable]:
    """Names as a list; a text or a number is one name."""
    return [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)


def _are_values(given):
    """Whether an argument that takes names was given what has them: arrays, columns."""
    kinds = "biufcmM" if hasattr(given, "iloc") else "fcmM"
    if hasattr(given, "get_indexer"):  # an index, of names
        return False
    if getattr(given, "ndim", 0) and getattr(getattr(given, "dtype", None), "kind", "O") in kinds:
        return True
    several = hasattr(given, "dims") or isinstance(given, list | tuple)
    return several and not all(isinstance(name, Hashable) for name in given)


def numbers_of(table: Any, names: Sequence[Hashable], where: str) -> np.ndarray:
    """`[n d]`, what is missing NaN. **Raises** `ValueError` naming a column that is not there or not of numbers."""
    require(table.columns, names, where)
    refuse_twice(table, names, where)
    refuse_dates(((name, table[name]) for name in names), f"`{where}`")
    rules: dict[str, Any] = {
        "dtype": "float64",
        "ensure_2d": False,
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
    }
    columns = []
    for name in names:
        if np.asarray(table[name]).dtype.kind == "c":
            refuse_text(table[name], f"the column {name!r} of `{where}`")
        try:
            columns.append(check_array(with_nan(table[name]), **rules))
        except ValueError as error:
            raise ValueError(_no_numbers(table[name], name, where, error)) from error
    return np.stack(columns, axis=1)


def _no_numbers(column, name, where, error):
    if reader := reader_of_dates(column):
        return f"The column {name!r} of `{where}` is dates as text: read them by {reader}."
    texts = Texts.among(column)
    if remedy := texts.remedy('`pandas.to_numeric(column, errors="coerce")` makes what is no number missing.'):
        first = f"the first {texts.written[0]!r} in row {column.index[texts.rows[:1]].tolist()[0]!r}"
        found = f"{len(texts.rows):,} of {texts.entries:,} entries of {name!r} are text, {first}"
        return f"`{where}` must hold numbers; {found}. {remedy}"
    return (
        f"The column {name!r} of `{where}` is not of numbers: {error}. Encode text as numbers "
        "(classes as zeros and ones, `pandas.get_dummies`), or read dates by `pandas.to_datetime`."
    )


def refuse_twice(table: Any, names: Sequence[Hashable], where: str) -> None:
    """**Raises** `ValueError` where several columns have one of the names."""
    twice = [name for name in names if np.ndim(table[name]) > 1]
    if twice:
        raise ValueError(f"`{where}` has several columns that are named {', '.join(map(repr, twice))}: rename them.")


def _refuse_nothing(rows):
    if not len(rows):
        raise ValueError("`observations` holds none: there is no row, or all values and places are NaN.")


def _check_options(options):
    """**Raises** `TypeError` for what is no option of the estimator, as Python does for its own arguments."""
    known = inspect.signature(NeuralProcessRegressor).parameters
    for name in options:
        if name not in known:
            others = {*known, *OF_FUNCTIONS} - {name}
            near = difflib.get_close_matches(name, sorted(others), 1)
            raise TypeError(f"Unexpected keyword argument {name!r}" + (f"; did you mean {near[0]!r}?" if near else "."))


def _check_counts(names, counts, finetune, gaps):
    """**Raises** `ValueError` for what does not go with counts, or only with these."""
    if counts is None:
        if names.exposure is not None:
            raise ValueError("`exposure` is of counts: say which, `counts=npax.counts.Poisson()` or `Binomial()`.")
        return
    if names.errors or finetune or gaps is not None or len(names.ys) > 1:
        raise ValueError(
            "`counts` take one column `y`, no `error` (that of a count is known) and no `finetune` with its `gaps`; "
            f"got y={names.ys}, error={names.errors}, finetune={finetune}, gaps={gaps}."
        )
    if names.exposure is not None and names.exposure in (*names.x, *names.ys):
        raise ValueError(
            f"`exposure` must name a column of its own, got {names.exposure!r}, which is among `x` or `y`."
        )


def _names_of_values(y, observations, x) -> list[Hashable]:
    if y is not None:
        return listed(y)
    if hasattr(observations, "to_dataset"):
        return [observations.name or ("value" if "y" in x else "y")]
    if not is_table(observations):
        refuse_other_kinds(observations)
    raise ValueError("`y` must name the variable to predict; only a DataArray needs no name.")


def _with_days(table, x, starts):
    """A table whose dates and durations are numbers."""
    numbers = {name: in_days(table[name], start) for name, start in zip(x, starts, strict=True) if start is not None}
    if not numbers:
        return table
    table = table.copy(deep=False)
    for name, column in numbers.items():
        table[name] = column
    return table
