"""The continuous ranked probability score."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from ._check import check_order, checked, numbers


def crps(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Mean CRPS of Gaussian predictions, in the units of `y`; the absolute error where the std goes to zero. Of other
    distributions see `crps_samples`.

    $$\mathrm{CRPS}(F, y) = \int (F(x) - 1[x \ge y])^2 dx
      = \sigma \left( z (2\Phi(z) - 1) + 2\varphi(z) - \pi^{-1/2} \right), \quad z = (y - \mu) / \sigma.$$

    A proper score like `nll`, but finite and forgiving of single outliers. **Shapes:** any, all the same.

    **Reference:** Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("std",))
    with np.errstate(over="ignore"):  # of a std of nearly nothing
        z = (y - mean) / std
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
    return float(np.mean((y - mean) * (2 * ndtr(z) - 1) + std * (2 * density - 1 / np.sqrt(np.pi))))


def crps_lognormal(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Mean CRPS of log-normal predictions, in the units of `y`; `mean` and `std` are those of the logarithm.

    $$\mathrm{CRPS} = y (2\Phi(z) - 1) - 2 e^{\mu + \sigma^2 / 2} \left( \Phi(z - \sigma)
      + \Phi(\sigma / \sqrt 2) - 1 \right), \quad z = (\log y - \mu) / \sigma.$$

    **Shapes:** any, all the same; `y` positive. **Reference:** Baran and Lerch (2015), Log-normal distribution based
    ensemble model output statistics models for probabilistic wind speed forecasting.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("y", "std"))
    z = (np.log(y) - mean) / std
    top = mean + np.square(std) / 2  # the mean of a wide distribution may be beyond all numbers where the score is not
    with np.errstate(over="ignore"):
        below, spread = (np.exp(top + log_ndtr(a)) for a in (z - std, -std / np.sqrt(2)))
    return float(np.mean(y * (2 * ndtr(z) - 1) - 2 * (below - spread)))


def crps_samples(y: ArrayLike, samples: ArrayLike) -> float:
    r"""Mean CRPS of predictions known by samples: $\mathbb E|X - y| - \tfrac12 \mathbb E|X - X'|$.

    The unbiased estimate: $X, X'$ run over pairs of different samples, so that the number of samples does not change
    its expectation. For one value it may come out slightly negative.

    **Shapes:** `y [*shape]`, `samples [n *shape]` with n >= 2. **Cost:** O(n log n) per value.
    """
    check_order(y=y, samples=samples)
    samples = numbers(samples=samples)["samples"]
    if samples.ndim == 0 or samples.shape[0] < 2:
        raise ValueError(f"`samples` needs at least 2 samples on its first axis, got shape {samples.shape}.")
    n = samples.shape[0]
    if samples.shape[1:] != np.shape(y):
        raise ValueError(
            f"`samples` must have the shape of `y`, {[*np.shape(y)]}, behind its first axis; got {[*samples.shape]}. "
            "Of what `sample_y` gives, pass the transpose."
        )
    y = checked(y=y)[0]
    samples = checked(samples=samples)[0].reshape(n, -1)
    # Sum over pairs |x_i - x_j|, i < j, of sorted values: the i-th smallest is added i times, subtracted n-1-i times.
    weights = 2 * np.arange(n) - n + 1
    spread = weights @ np.sort(samples, axis=0) / (n * (n - 1))
    return float(np.mean(np.mean(np.abs(samples - y), axis=0) - spread))
