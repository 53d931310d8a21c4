"""Positive values whose logarithm is a field: concentrations, rain, biomass, incomes."""

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..arguments import instance, true_or_false
from ..counts._base import refuse
from ..links import Log
from ..metrics._check import check_order, check_rows
from ..training import AbstractGaps
from . import linked
from .dates import refuse_dates_in
from .known_errors import like
from .missing import unmasked, warn_of_codes
from .moments import exceedance
from .sklearn import NeuralProcessRegressor
from .text import refuse_text

LOG = Log()


class LogNormalRegressor(RegressorMixin, BaseEstimator):
    r"""Positive, skewed values by a pretrained neural process: concentrations, rain, biomass. Nothing is trained.

    What `NeuralProcessRegressor` predicts is the logarithm, and so predictions are log-normal: no interval goes below
    zero, and noise and errors are proportional to the value (lognormal kriging). With $\log y \sim \mathcal N(m, s^2)$
    the mean is $\exp(m + s^2 / 2)$, the median $\exp(m)$.

    ```python
    reg = npax.LogNormalRegressor(npax.NeuralProcessRegressor(coords="isotropic")).fit(sites, zinc)
    mean, std = reg.predict(grid, return_std=True)
    low, median, high = reg.predict_quantiles(grid, [0.025, 0.5, 0.975]).T
    polluted = reg.exceedance(grid, 720, include_noise=False)  # the probability of more
    mean, std = reg.predict_average(grid, return_std=True)  # the average of the area, not that of logarithms
    ```

    **Arguments:** `regressor`: the `NeuralProcessRegressor` of the logarithm, with coordinates, covariates (whose
    slopes are relative changes) and whatever else it takes; None for one as it comes. Its model must be one of real
    numbers.

    **Attributes** after `fit`: `regressor_`, that of the logarithm, fitted: its `predict` gives logarithms, its `X_`,
    `y_`, `error_` are in use; `n_features_in_`.

    **Shapes:** `X [n d]`, `y [n]`, all of it positive or missing, in any unit.

    **Which one:** this one where values vary by a factor of two or more and large ones vary more than small ones do. On
    log-normal fields whose logarithm has a standard deviation of 0.5, 1 and 1.5 the CRPS is 4, 11 and 17 % lower than
    that of `NeuralProcessRegressor` of the values themselves, 4, 57 and 81 % of whose 95 % intervals go below zero
    (`benchmarks/lognormal.py`).

    **Pitfalls:** zeros have no logarithm: of values below a limit of detection half the limit is usual; where zeros
    are many, or values are counts, see `CountRegressor`. Where the logarithm is uncertain, by 1 or more, means are far
    above medians, and depend on how certain they are: far from the observations most of all. Noise is taken for
    variation of the values themselves: where it is error of measurement, of standard deviation $s$ in the logarithm,
    give it as `error`, or means and averages are too high by a factor of about $\exp(s^2 / 2)$.

    **Cost:** that of the regressor. **Reference:** Journel (1980), The lognormal approach to predicting local
    distributions of selective mining unit grades.
    """

    def __init__(self, regressor=None):
        self.regressor = regressor

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(
        self, X, y, *, error: Any = None, finetune: int = 0, gaps: AbstractGaps | None = None
    ) -> "LogNormalRegressor":
        """As `NeuralProcessRegressor.fit` of the logarithm.

        **Arguments:** `error`: known standard deviations of `y`, in its unit; of the logarithm they are
        $\\sqrt{\\log(1 + (e / y)^2)}$. `finetune`, `gaps`: as there.

        **Raises:** `ValueError` for values of zero or below, and whatever `NeuralProcessRegressor.fit` finds wrong;
        `TypeError` for another kind of `regressor`.
        """
        regressor = NeuralProcessRegressor() if self.regressor is None else self.regressor
        instance(NeuralProcessRegressor, regressor=regressor)
        regressor: Any = clone(regressor)
        level, of_level = _checked(X, y, error)
        warn_of_codes({"`y`": _values(level)})
        return self._keep(regressor.fit(X, level, error=of_level, finetune=finetune, gaps=gaps))

    def update(self, X, y, *, error: Any = None) -> "LogNormalRegressor":
        """Adds observations to those in use, as `fit` on all of them; a model that was fine-tuned stays as it is."""
        level, of_level = _checked(X, y, error)
        warn_of_codes({"`y`": np.concatenate([np.exp(self._fitted().y_), _values(level)])})
        return self._keep(self._fitted().update(X, level, error=of_level))

    def predict(self, X, return_std=False, include_noise=True):
        """The mean at the rows of `X`, `[n]`, and with `return_std` the standard deviation; `include_noise`: of a new
        observation (True) or of the noiseless function, whose mean is lower."""
        mean, std = LOG.moments(*self._levels(X, include_noise))
        return (mean, std) if return_std else mean

    def predict_average(self, X, weights=None, return_std=False, return_cov=False):
        """The average value of regions, and with `return_std` its standard deviation: `[regions]`, of one region a
        number; with `return_cov` their covariance, `[regions regions]`, by which it is known how they differ.

        **Arguments:** `X [n d]`: places all over the regions; `weights`: what each counts, `[n]` or `[regions n]`; None
        for the same. The means are averages of those of `predict`, noise included; the standard deviations are those of
        the noiseless function. Cost as of `NeuralProcessRegressor.predict_average`; 95 % intervals cover 97 to 98 %
        (`benchmarks/lognormal.py`).
        """
        return linked.average(LOG, self._fitted(), X, weights, return_std, return_cov)

    def predict_average_quantiles(self, X, q, weights=None) -> np.ndarray:
        """Quantiles at probabilities `q` of what `predict_average` gives, as of a log-normal value: `[regions]`, then
        the shape of `q`."""
        return linked.average_quantiles(LOG, self._fitted(), X, weights, q)

    def predict_quantiles(self, X, q, include_noise=True) -> np.ndarray:
        """Quantiles at probabilities `q`: `[n]`, then the shape of `q`."""
        return LOG.rate(self._fitted().predict_quantiles(X, q, include_noise))

    def exceedance(self, X, threshold, include_noise=True) -> np.ndarray:
        """The probability that the value is above one threshold or several: `[n]`, then the shape of `threshold`. Of a
        new observation; `include_noise=False` is that of the noiseless function."""
        mean, std = self._levels(X, include_noise)
        return exceedance(mean, std, threshold, LOG)

    def sample_y(self, X, n_samples=1, random_state=0, include_noise=True) -> np.ndarray:
        """Joint samples at the rows of `X`, `[n n_samples]`: as `NeuralProcessRegressor.sample_y`."""
        return LOG.rate(self._fitted().sample_y(X, n_samples, random_state, include_noise))

    def score(self, X, y, sample_weight=None) -> float:
        """The coefficient of determination of the means; rows without a finite value are left out, as in `fit`."""
        from sklearn.metrics import r2_score

        level: Any = _checked(X, y, None)[0]
        if sample_weight is not None:
            check_consistent_length(y, sample_weight)
            sample_weight = np.asarray(sample_weight)[np.isfinite(level)]
        X, level, _ = self._fitted()._checked(X, level, None, reset=False)
        expected, _ = LOG.moments(*self._fitted()._new_at(X))
        return float(r2_score(np.exp(level), expected, sample_weight=sample_weight))

    def score_report(self, X, y, *, error: Any = None) -> dict[str, float]:
        """RMSE and MAE of the means; negative log-likelihood, CRPS, 95 % coverage and interval score of the log-normal
        distributions. `error`: known standard errors of `y`, as in `fit`."""
        level, of_level = _checked(X, y, error)
        X, level, of_level = self._fitted()._checked(X, level, of_level, reset=False)
        mean, std = self._fitted()._new_at(X)
        return score_report(np.exp(level), mean, std if of_level is None else np.hypot(std, of_level))

    def _keep(self, regressor):
        self.regressor_ = regressor
        linked.keep_columns(self, regressor)
        return self

    def _fitted(self):
        check_is_fitted(self)
        return self.regressor_

    def _levels(self, X, include_noise):
        true_or_false(include_noise=include_noise)
        return self._fitted().predict(X, return_std=True, include_noise=include_noise)

    def _request(self):
        """What predictions depend on, beside the strategy."""
        return (*self.regressor_._request(), "of the logarithm")


def _values(level):
    return np.exp(level[np.isfinite(level)]) if level is not None else np.empty(0)


def logarithms(y: np.ndarray, error: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Of positive values `[n]`, what is not finite being missing, and of their standard deviations. **Raises**
    `ValueError` for others."""
    there = np.isfinite(y)
    remedy = (
        "Of values below a limit of detection half the limit is usual. Where zeros are real, such as days without "
        "rain, predict whether there is any by itself (`CountRegressor(npax.counts.Binomial())` of zeros and ones), "
        "and amounts from the others."
    )
    refuse(there & (y <= 0), "`y` must be positive, for its logarithm is predicted; got {:g}", y, remedy=remedy)
    y = np.where(there, y, np.nan)
    if error is None:
        return np.log(y), None
    return np.log(y), np.where(there, np.sqrt(np.log1p(np.square(like(y, error) / y))), 0.0)


def score_report(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """Scores of positive values whose logarithms are predicted as normal, `mean` and `std`."""
    from .. import metrics

    expected, level = LOG.moments(mean, std)[0], np.log(y)
    low, high = (LOG.rate(mean + std * ndtri(q)) for q in (0.025, 0.975))
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return {
        "rmse": metrics.rmse(y, expected),
        "mae": metrics.mae(y, expected),
        "nll": metrics.nll(level, mean, std) + float(np.mean(level)),
        "crps": metrics.crps_lognormal(y, mean, std),
        "coverage": metrics.coverage(level, mean, std),
        "interval": float(np.mean(high - low + 2 / 0.05 * outside)),
    }


def _checked(X, y, error):
    """The logarithms, before the regressor looks at shapes and at `X`."""
    check_order(y=y, error=error)
    check_rows(X, y=y)
    if y is None:
        return None, None  # which the regressor refuses
    refuse_dates_in(y, "`y`")
    refuse_text(y, "`y`")
    return logarithms(column_or_1d(unmasked(y), warn=True).astype(np.float64), error)
