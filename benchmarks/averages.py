"""Averages over regions: the shipped model beside Gaussian processes.

    python benchmarks/averages.py

Fields of Matern 3/2 in a square are seen with noise, and the averages of 32 by 32 cells are asked for: over the whole
square, a quarter, a ninth and a 64th of it. Beside `predict_average`, what the cells' own predictions say of it if
their errors are taken to be independent, or all alike; a scikit-learn Gaussian process that is fitted to the
observations (Matern 3/2, white noise, two restarts); and the best possible, the process that knows its covariance.
Rates are drawn alike: levels of counts, of which the average rates are asked for.

Writes `results/averages.md` and `.json`.
"""

import argparse
import time
import warnings
from typing import NamedTuple

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import draw, matern32
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import npax
from npax.counts import AbstractCounts, Binomial, Poisson
from npax.metrics import crps

SIDE = 32
MOST = 1000
"""Observations that a Gaussian process is fitted to, at most: it takes minutes beyond."""
METHODS = ("npax", "npax, cells independent", "npax, cells alike", "GP, fitted", "best possible")


class Kind(NamedTuple):
    """A field of a length scale, seen `n` times with noise."""

    n: int
    scale: float
    noise: float

    def __str__(self):
        return f"{self.n:,}, length scale {self.scale:g}, noise {self.noise:g}"


class Rates(NamedTuple):
    """Counts of an exposure, at `n` places; the mean of their levels."""

    counts: AbstractCounts
    n: int
    exposure: float
    middle: float

    def __str__(self):
        return {
            Poisson: f"{self.n} counts, {self.exposure * np.exp(self.middle):.2g} expected in each",
            Binomial: f"{self.n} places, of {self.exposure:.0f} tested some {100 / (1 + np.exp(-self.middle)):.0f} %",
        }[type(self.counts)]


KINDS = [Kind(20, 0.5, 0.3), Kind(50, 0.3, 0.3), Kind(200, 0.3, 1.0), Kind(200, 0.05, 0.1), Kind(3000, 0.2, 0.5)]
RATES = [Rates(Binomial(), 200, 10.0, -1.0), Rates(Poisson(), 200, 1.0, 0.0), Rates(Poisson(), 400, 1.0, -1.6)]


def cells():
    axis = (np.arange(SIDE) + 0.5) / SIDE
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def regions(x):
    inside = [x < np.inf, x < 0.5, (x > 0.33) & (x < 0.67), (x > 0.5) & (x < 0.625)]
    weights = np.array([part.all(axis=1) for part in inside], float)
    return weights / weights.sum(axis=1, keepdims=True)


def of_field(kind: Kind, rng):
    """Mean and standard deviation of the averages by each method, their true values, and seconds."""
    at = cells()
    w, x = regions(at), rng.uniform(size=(kind.n, 2))
    k = matern32(np.concatenate([x, at]), kind.scale)
    field = draw(rng, k)
    y = field[: kind.n] + kind.noise * rng.normal(size=kind.n)
    started = time.monotonic()
    reg = npax.NeuralProcessRegressor().fit(x, y)
    found = {"npax": reg.predict_average(at, w, return_std=True)}
    seconds = {"npax": time.monotonic() - started}
    mean, std = reg.predict(at, return_std=True, include_noise=False)
    found["npax, cells independent"] = w @ mean, np.sqrt(np.square(w) @ np.square(std))
    found["npax, cells alike"] = w @ mean, w @ std
    if kind.n <= MOST:
        started = time.monotonic()
        found["GP, fitted"] = of_covariance(w, *fitted(x, y, at))
        seconds["GP, fitted"] = time.monotonic() - started
    known, across = cho_factor(k[: kind.n, : kind.n] + kind.noise**2 * np.eye(kind.n)), k[kind.n :, : kind.n]
    cov = k[kind.n :, kind.n :] - across @ cho_solve(known, across.T)
    found["best possible"] = of_covariance(w, across @ cho_solve(known, y), cov)
    return found, w @ field[kind.n :], seconds


def of_covariance(w, mean, cov):
    return w @ mean, np.sqrt(np.einsum("ki,ij,kj->k", w, cov, w))


def fitted(x, y, at):
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(1.0, (1e-2, 1e2), nu=1.5) + WhiteKernel(0.1, (1e-6, 1e1))
    gp = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
    middle, spread = y.mean(), y.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp.fit(x, (y - middle) / spread)
    mean, cov = gp.predict(at, return_cov=True)
    return middle + spread * mean, spread**2 * (cov - gp.kernel_.k2.noise_level * np.eye(len(at)))


def of_rates(kind: Rates, rng):
    at = cells()
    w, x = regions(at), rng.uniform(size=(kind.n, 2))
    level = kind.middle + draw(rng, matern32(np.concatenate([x, at]), 0.3))
    exposure = np.full(kind.n, kind.exposure)
    y = kind.counts.draw(rng, exposure, kind.counts.rate(level[: kind.n]))
    started = time.monotonic()
    reg = npax.CountRegressor(kind.counts).fit(x, y, exposure=exposure)
    low, middle, high = reg.predict_average_quantiles(at, [0.025, 0.5, 0.975], w).T
    seconds = time.monotonic() - started
    true = w @ kind.counts.rate(level[kind.n :])
    mean, std = reg.predict(at, return_std=True, include_noise=False)
    alone = np.sqrt(np.square(w) @ np.square(std))
    return [
        np.mean((low <= true) & (true <= high)),
        np.mean(np.abs(w @ mean - true) <= 1.96 * alone),
        np.mean(np.abs(middle - true) / true),
        seconds,
    ]


def scores(draws):
    """Of draws as `of_field` gives them: of each method the scores."""
    found = {}
    for method in METHODS:
        each = [
            (mean, std, true, *of["best possible"])
            for of, true, _ in draws
            if method in of
            for mean, std in [of[method]]
        ]
        if not each:
            continue
        mean, std, true, best_mean, best_std = map(np.array, zip(*each, strict=True))
        seconds = [of[method] for _, _, of in draws if method in of]
        found[method] = {
            "std": float(np.median(std / best_std)),
            "coverage": float(np.mean(np.abs(mean - true) <= 1.96 * std)),
            "crps": crps(true, mean, std),
            "above": crps(true, mean, std) / crps(true, best_mean, best_std) - 1,
            "seconds": float(np.median(seconds)) if seconds else None,
        }
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20, help="draws of each kind")
    options = parser.parse_args()
    fields, rates, rows = {}, {}, []
    for kind in KINDS:
        rng = np.random.default_rng(0)
        fields[str(kind)] = scores([of_field(kind, rng) for _ in range(options.repeats)])
        for method, found in fields[str(kind)].items():
            seconds = "" if found["seconds"] is None else f"{found['seconds']:.1f}"
            shares = [f"{100 * found[name]:.0f} %" for name in ("coverage", "above")]
            rows.append([str(kind), method, f"{found['std']:.2f}", *shares, f"{found['crps']:.4f}", seconds])
            print(*rows[-1], sep=" | ", flush=True)
    of_counts = []
    for kind in RATES:
        rng = np.random.default_rng(0)
        values = np.mean([of_rates(kind, rng) for _ in range(options.repeats)], axis=0).tolist()
        rates[str(kind)] = dict(zip(("coverage", "alone", "error", "seconds"), values, strict=True))
        of_counts.append([str(kind), *(f"{100 * value:.0f} %" for value in values[:3]), f"{values[3]:.1f}"])
        print(*of_counts[-1], sep=" | ", flush=True)
    header = [
        "observations",
        "method",
        "std to the best",
        "95 % intervals hold",
        "CRPS above the best",
        "CRPS",
        "seconds",
    ]
    of_rates_header = ["counts", "95 % intervals hold", "cells independent", "mean error of the median", "seconds"]
    body = "\n\n".join(
        [
            f"Over {options.repeats} draws and four regions (std: the median); seconds: fit and averages, the median.",
            table(header, rows),
            "## Rates",
            table(of_rates_header, of_counts),
        ]
    )
    about = circumstances()
    print(write_markdown("averages", "Averages over regions", body, about))
    write_json("averages", {**about, "repeats": options.repeats, "fields": fields, "rates": rates})


if __name__ == "__main__":
    main()
