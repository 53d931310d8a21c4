"""What estimators have in common whose values are functions of a predicted level: rates of counts, positive values."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from ..inference import average_covariance, average_std
from ..links import Link
from ..metrics._check import check_rows
from .options import probabilities, refuse_both
from .regions import Regions
from .sklearn import NeuralProcessRegressor

SMALLEST = np.finfo(float).tiny


def keep_columns(estimator: Any, of_level: Any) -> None:
    """Number and names of columns, as scikit-learn has them, are those of the regressor of levels."""
    estimator.n_features_in_ = of_level.n_features_in_
    if hasattr(of_level, "feature_names_in_"):
        estimator.feature_names_in_ = of_level.feature_names_in_
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def average(link: Link, of_level: NeuralProcessRegressor, X: Any, weights: Any, return_std: bool, return_cov: bool):
    """The average value of regions, with its standard deviation or covariance if asked for, from a fitted regressor of
    one column of levels; the noise of levels is averaged out. Deviations of values are those of levels, times by how
    much the value's own standard deviation is larger, and the mean with noise than that without."""
    refuse_both(return_std, return_cov)
    check_rows(X, axis=-1, weights=weights)
    X = of_level._targets(X)
    regions = Regions.of(weights, len(X))
    field = of_level._predictor()(X)
    mean, with_noise, std = (a[:, 0] for a in (field.mean, field.observation_std, field.function_std))
    value = regions.like(regions.shares @ link.moments(mean, with_noise)[0])
    if not (return_std or return_cov):
        return value
    steep = link.slope(mean, with_noise) / np.maximum(link.slope(mean, std), SMALLEST)
    times = steep * link.moments(mean, std)[1] / np.maximum(std, SMALLEST)
    unit = max(times.max(), SMALLEST)  # whose square may be no number
    told = of_level._predictor(), X, regions.shares * (times / unit), field
    if return_std:
        return value, regions.like(unit * average_std(*told)[:, 0])
    return value, regions.like(unit**2 * average_covariance(*told)[..., 0], axes=2)


def average_quantiles(link: Link, of_level: NeuralProcessRegressor, X: Any, weights: Any, q: Any) -> np.ndarray:
    """Quantiles at probabilities `q` of these averages, `[regions]`, then the shape of `q`: those of a normal level
    whose value has the mean and the standard deviation."""
    levels = ndtri(probabilities(q))
    moments = average(link, of_level, X, weights, True, False)
    mean, std = (np.asarray(a) for a in moments)
    level, across = link.of_moments(mean.reshape(-1), std.reshape(-1))
    quantiles = link.rate(level[:, None] + across[:, None] * levels)
    return quantiles.reshape((*mean.shape, *np.shape(q)))
