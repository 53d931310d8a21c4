"""Rates of counts: cases among people, positives among those who were tested."""

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..arguments import instance, true_or_false
from ..counts import AbstractCounts, Linearised, Poisson, score_report
from ..inference import Even
from ..inference.counted import ROUNDS, Counted, linearised
from ..inference.groups import of_same
from ..inference.order import sorted_rows
from ..likelihoods import of_real_numbers
from ..metrics._check import check_order, check_rows
from ..models._base import hears_errors
from ..progress import Progress
from ..warn import warn
from . import linked
from .dates import refuse_dates_in
from .missing import unmasked
from .moments import exceedance
from .options import seed_of
from .sklearn import NeuralProcessRegressor
from .text import refuse_text

LOOKED_AT = 4096
"""Counts from which overdispersion is told, at most."""
IMPROBABLE = -20.0
"""The logarithm of the probability of a count below which it is told: that of six standard deviations."""


class CountRegressor(RegressorMixin, BaseEstimator):
    r"""Rates of counts by a pretrained neural process: maps of prevalence, incidence, abundance. Nothing is trained.

    What is mapped is a level, $\log r$ of a rate of events or $\operatorname{logit} r$ of a share, which varies over
    the coordinates, with `covariates` (whose slopes are logarithms of ratios of rates, or of odds), and by a noise of
    its own (overdispersion). Counts are brought to normal observations of it with known errors, by variational
    inference (`npax.inference.linearised`), from which the network predicts levels as `NeuralProcessRegressor` does.
    The model is the generalised linear geostatistical one (Diggle, Tawn and Moyeed, 1998, *Model-based geostatistics*);
    of counts in cells, the log-Gaussian Cox process.

    ```python
    reg = npax.CountRegressor(npax.counts.Binomial(), npax.NeuralProcessRegressor(coords="latlon"))
    reg.fit(villages, positive, exposure=tested)
    prevalence, std = reg.predict(grid, return_std=True)
    low, high = reg.predict_quantiles(grid, [0.025, 0.975]).T
    above = reg.exceedance(grid, 0.2, include_noise=False)  # the probability that more than a fifth are positive
    low, high = reg.predict_average_quantiles(grid, [0.025, 0.975], people)  # of all who live there
    ```

    **Arguments:**

    - `counts`: `npax.counts.Poisson()` for events, which None stands for; `npax.counts.Binomial()` for positives among
      those tested.
    - `regressor`: the `NeuralProcessRegressor` of the level, with coordinates, covariates and whatever else it takes;
      None for one as it comes. Its model must take known errors, as `"gp-universal"` does.

    **Attributes** after `fit`: `regressor_`, that of the level, fitted: `regressor_.predict` gives levels, and
    `regressor_.coef_` slopes; `X_`, `y_`, `exposure_`; `n_iter_`, the rounds of inference; `n_features_in_`.

    **Shapes:** `X [n d]`, `y [n]`, `exposure [n]` or one number. Rates are of one unit of exposure.

    **Sums.** Counts of the same place, and the same covariates, are summed first: whether their rates are one, or each
    has a noise of its own, is told from how they differ. Counts so small that single ones say next to nothing are
    summed over near places:

    - without covariates to two expected events, or so that 125 to 250 sums are left (of a series 50 to 100), but at
      least to half an event;
    - with `covariates`, where these are alike, to half an event; of 2,000 counts or more to up to two, so that 500 to
      1,000 sums are left;
    - a place at which eight events are seen, as in an outbreak, is not summed with others.

    **Pitfalls:** rates are averages over a place's people; a rate that was counted over a region is taken to be that of
    its point. Where events are few intervals are too narrow: with 87 in 400 places those of the smooth rate hold 89 %,
    with 5 to 10 in all 80 to 82 %; in series of one event a week, or in three weeks, 94 to 96 %, of those with a cycle
    of the year 80 to 94 %, but 51 % where 50 events are all there is of 19 years. Single counts far above all others
    are taken for chance, which is told where the chance is small. `include_noise=False` gives the smooth rate, around
    which those of places scatter by overdispersion: their mean is higher. With it, that of a single further place,
    which may differ from its neighbours; where counts are summed, by as much as they vary beyond chance. Of 5,000 to
    20,000 counts, of which the network sees means, intervals of the smooth rate hold 86 to 98 %.
    """

    def __init__(self, counts=None, regressor=None):
        self.counts = counts
        self.regressor = regressor

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X, y, *, exposure: Any = 1.0) -> "CountRegressor":
        """Linearises the counts, in rounds of a fit and a prediction of the regressor in one view: usually 3 to 8, at
        most 30.

        **Arguments:** `exposure`: what the counts are of: people, years, expected cases; or how many were tested.

        **Raises:** `ValueError` for counts or exposures that cannot be, and whatever `NeuralProcessRegressor.fit` finds
        wrong; `TypeError` for other kinds of `counts` or `regressor`. **Warns** with scikit-learn's
        `ConvergenceWarning` where rounds do not settle, and of counts that would hardly be seen at the rates that were
        found.
        """
        if isinstance(self.counts, NeuralProcessRegressor):
            raise TypeError(
                "`counts` must be such as `npax.counts.Poisson()`; got a NeuralProcessRegressor, which is the second "
                "argument: `CountRegressor(counts, regressor)`."
            )
        instance(AbstractCounts, counts=self._counts)
        regressor = NeuralProcessRegressor() if self.regressor is None else self.regressor
        instance(NeuralProcessRegressor, regressor=regressor)
        regressor = clone(regressor)
        X, y, exposure = self._began(regressor, X, y, exposure)
        self._keep(regressor, X, y, exposure)
        return self

    def update(self, X, y, *, exposure: Any = None) -> "CountRegressor":
        """Adds counts to those in use, as `fit` on all of them. `exposure` is left out where it was in `fit`."""
        check_is_fitted(self)
        exposure = self._exposure(exposure)
        X, y, exposure = self._checked(self.regressor_, X, y, exposure, reset=False)
        parts = ((self.X_, X), (self.y_, y), (self.exposure_, exposure))
        X, y, exposure = map(np.concatenate, parts)
        self.regressor_._warn_of_codes(X, y, exposure)
        return self._keep(self.regressor_, X, y, exposure)

    def predict(self, X, return_std=False, include_noise=True):
        """The mean of the rate at the rows of `X`, `[n]`, and with `return_std` its standard deviation.

        `include_noise`: of a single further place (True), or of the rate that varies smoothly. The count of an exposure
        `e` has the mean `e * rate`.
        """
        mean, std = self._counts.moments(*self._levels(X, include_noise))
        return (mean, std) if return_std else mean

    def predict_average(self, X, weights=None, return_std=False, return_cov=False):
        """The average rate of regions, such as the prevalence of a district, and with `return_std` its standard
        deviation: `[regions]`, of one region a number; with `return_cov` their covariance, `[regions regions]`, by
        which it is known how they differ.

        **Arguments:** `X [n d]`: places all over the regions; `weights`: how many people live there, `[n]` or
        `[regions n]`; None for the same. Cost and accuracy are those of `NeuralProcessRegressor.predict_average`; of
        200 and 400 counts 95 % intervals hold 86 to 89 %. Overdispersion is averaged out.
        """
        return linked.average(self._counts, self._fitted(), X, weights, return_std, return_cov)

    def predict_average_quantiles(self, X, q, weights=None) -> np.ndarray:
        """Quantiles at probabilities `q` of what `predict_average` gives: `[regions]`, then the shape of `q`. They are
        those of a normal level whose rate has the mean and the standard deviation."""
        return linked.average_quantiles(self._counts, self._fitted(), X, weights, q)

    def predict_quantiles(self, X, q, include_noise=True) -> np.ndarray:
        """Quantiles of the rate at probabilities `q`: `[n]`, then the shape of `q`."""
        return self._counts.rate(self._fitted().predict_quantiles(X, q, include_noise))

    def exceedance(self, X, threshold, include_noise=True) -> np.ndarray:
        """The probability that the rate is above one threshold or several: `[n]`, then the shape of `threshold`. Of a
        single further place; `include_noise=False` is that of the smooth rate, which maps of exceedance usually
        show."""
        mean, std = self._levels(X, include_noise)
        return exceedance(mean, std, threshold, self._counts)

    def sample_y(self, X, n_samples=1, random_state=0, include_noise=True, *, exposure: Any = 1.0) -> np.ndarray:
        """Counts of an `exposure`, drawn jointly: `[n n_samples]`.

        Their levels are `regressor_.sample_y(...)`, whose cost and pitfalls are those of
        `NeuralProcessRegressor.sample_y`; `counts.rate` of them are joint samples of rates.
        """
        levels = self._fitted().sample_y(X, n_samples, random_state, include_noise)
        rng = np.random.default_rng((1, seed_of(random_state, self.regressor_.random_state)))
        each = exposures(exposure, len(levels))
        if not (np.isfinite(each) & (each >= 0)).all():
            raise ValueError(f"`exposure` must be finite and not negative, got {each.min():g} among them.")
        each = np.broadcast_to(each[:, None], levels.shape)
        return self._counts.draw(rng, each, self._counts.rate(levels))

    def score(self, X, y, sample_weight=None, *, exposure: Any = None) -> float:
        """The coefficient of determination of expected counts: of `exposure` times the rate. `exposure` is left out
        where it was in `fit`.

        **Pitfall:** scikit-learn's searches and `cross_val_score` hand exposures on to `fit` and `score` where metadata
        routing is enabled and both are asked for, `set_fit_request(exposure=True).set_score_request(exposure=True)`.
        """
        from sklearn.metrics import r2_score

        check_is_fitted(self)
        exposure = self._exposure(exposure)
        if sample_weight is not None:
            check_consistent_length(y, sample_weight)
            counted = where_asked(column_or_1d(unmasked(y)), exposures(exposure, len(y)))
            sample_weight = np.asarray(sample_weight)[np.isfinite(counted.astype(np.float64))]
        X, y, exposure = self._checked(self._fitted(), X, y, exposure, reset=False)
        rate, _ = self._counts.moments(*self._fitted()._new_at(X))
        return float(r2_score(y, exposure * rate, sample_weight=sample_weight))

    def score_report(self, X, y, *, exposure: Any = None) -> dict[str, float]:
        """`rmse mae nll crps coverage interval` of counts (`npax.counts.score_report`). `exposure` is left out where it
        was in `fit`."""
        check_is_fitted(self)
        exposure = self._exposure(exposure)
        X, y, exposure = self._checked(self._fitted(), X, y, exposure, reset=False)
        return score_report(self._counts, y, exposure, *self._fitted()._new_at(X))

    @property
    def _counts(self):
        return Poisson() if self.counts is None else self.counts

    def _exposure(self, given):
        """One where none was ever given. **Raises** `ValueError` where some were given to `fit` and none are here."""
        if given is None and (self.exposure_ != 1).any():
            raise ValueError("`exposure` was given to `fit`: give that of these counts, too.")
        return 1.0 if given is None else given

    def _request(self):
        """What predictions depend on, beside the strategy: not what the counts are linearised to, whose last
        digits are those of a machine."""
        network, _, *others = self.regressor_._request()
        return network, (self.X_, self.y_, self.exposure_, self._counts), *others

    def _fitted(self):
        check_is_fitted(self)
        return self.regressor_

    def _levels(self, X, include_noise):
        true_or_false(include_noise=include_noise)
        return self._fitted().predict(X, return_std=True, include_noise=include_noise)

    def _began(self, regressor, X, y, exposure):
        regressor._check_options()
        X, y, exposure = self._checked(regressor, X, y, exposure, reset=True)
        if regressor.tile_size == "auto":
            raise ValueError('`regressor` must have a number as `tile_size`, such as 128: "auto" is not for counts.')
        regressor._begin(X)
        regressor._warn_of_codes(X, y, exposure)
        model = regressor.model_
        if not (hears_errors(model) and of_real_numbers(model.likelihood)):
            raise ValueError(
                "`regressor` must have a model of real numbers that takes known errors, such as "
                f'"gp-universal"; got one that is a {type(model).__name__}.'
            )
        return X, y, exposure

    def _checked(self, regressor, X, y: Any, exposure, *, reset):
        check_order(y=y, exposure=exposure)
        check_rows(X, y=y, exposure=exposure)
        if y is not None:
            y = column_or_1d(unmasked(y), warn=True)
            exposure = exposures(exposure, len(y))
            y = where_asked(y, exposure)
        X, known, _ = regressor._checked(X, y, None, reset=reset)
        y = np.asarray(y, np.float64)
        refuse_impossible(self._counts, y, exposure)
        if (known != np.floor(known)).any():
            warn(
                f"`y` holds {known[known != np.floor(known)][0]:g}, which is no whole number: counts are, and how "
                "certain rates are follows from these. Give counts and their `exposure`, not rates or shares."
            )
        return X, known, exposure[np.isfinite(y)]

    def _keep(self, regressor, X, y, exposure):
        with regressor._as_before_if_it_fails(), Progress("Rounds", ROUNDS, shown=regressor.progress) as bar:
            table = Counted(X, y, exposure).pooled(self._counts, regressor._system, regressor._columns)
            in_one_view = copy(regressor)
            in_one_view.views, in_one_view.progress = None, False

            def predict(seen: Linearised):
                in_one_view._keep(table.x, seen.value, seen.error, noise=False)
                return in_one_view._predictor()(table.x)

            def note(change):
                bar.advance(1, f"levels changed by {change:.2g} of their standard deviations")

            rounds = linearised(self._counts, table.y, table.exposure, predict, note)
            variance, shared = 0.0, 0.0
            if len(table.y) < len(y):
                variance, shared = self._overdispersion(in_one_view, X, y, exposure)
            left = shared / table.places + (variance - shared) / table.number  # in the mean of the rates of a sum
            above = self._counts.curved / 2 * (variance - left)
            regressor._keep(table.x, rounds.seen.value - above, rounds.seen.error, noise=False)
            if np.median(table.number) > 1:  # what noise the network finds is that between sums
                regressor._tell_noise(Even(np.sqrt([variance])))
            if not rounds.settled:
                warn(
                    f"Levels of the counts have not settled after {rounds.number} rounds: intervals may be off.",
                    ConvergenceWarning,
                )
            self._tell_improbable(table, rounds.log_evidence)
        self.regressor_, self.n_iter_ = regressor, rounds.number
        self.X_, self.y_, self.exposure_ = X, y, exposure
        linked.keep_columns(self, regressor)
        return self

    def _tell_improbable(self, table, log_evidence):
        improbable = log_evidence < IMPROBABLE
        if 0 < improbable.sum() <= max(1, len(improbable) // 10):  # more are no exceptions
            row = int(np.argmin(log_evidence))
            others = f" and {improbable.sum() - 1:,} more" if improbable.sum() > 1 else ""
            warn(
                f"The count {table.y[row]:g} of an exposure of {table.exposure[row]:g} at {table.x[row]}{others} would "
                "hardly be seen by chance (a probability below 1e-8), and is taken for it: rates there are those of "
                "what is near. Look whether `y` and `exposure` are right there, or leave them out."
            )

    def _overdispersion(self, regressor, X, y, exposure):
        """The variance of the noise of levels, and that part of it which counts of the same place share."""
        some = np.random.default_rng(0).permutation(sorted_rows(X, y[:, None], exposure[:, None]))[:LOOKED_AT]
        field = regressor._predictor()(X[some])
        given = y[some], exposure[some], field.mean[:, 0], field.function_std[:, 0]
        variance = self._counts.overdispersion(*given)
        return variance, min(self._counts.shared_overdispersion(*given, of_same(X[some])), variance)


def where_asked(y: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    """Counts `[n]`, missing where there are none of no exposure, which say nothing; what is no number as it is."""
    if y.dtype.kind not in "iuf" or len(y) != len(exposure):
        return y
    return np.where((exposure == 0) & (y == 0), np.nan, y.astype(np.float64))


def refuse_impossible(counts: AbstractCounts, y: np.ndarray, exposure: np.ndarray) -> None:
    """**Raises** `ValueError` for counts or exposures that cannot be, but where no count is known, with their row."""
    there = np.isfinite(y)
    counts.refuse_impossible(np.where(there, y, 0.0), np.where(there, exposure, 1.0))


def exposures(exposure: Any, n: int) -> np.ndarray:
    """Exposures `[n]`, float64. **Raises** `ValueError` for another shape, and for what are no numbers."""
    refuse_dates_in(exposure, "`exposure`")
    refuse_text(exposure, "`exposure`")
    if exposure is None:
        raise ValueError("`exposure` must be one number or an array, got None: leave it out for 1.")
    given = np.asarray(unmasked(exposure), np.float64)
    if given.shape not in ((), (n,), (n, 1)):
        raise ValueError(f"`exposure` must be one number or have the length of the counts, {n}; got {given.shape}.")
    return np.array(np.broadcast_to(given.reshape(-1) if given.ndim else given, n))
