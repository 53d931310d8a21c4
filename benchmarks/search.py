"""Bayesian optimisation of well-known functions: the shipped model beside a Gaussian process fitted at every step.

    python benchmarks/search.py

Branin and Hartmann-3 (their minima are known), exact and with Gaussian noise of a twentieth of their standard
deviation over the box. Both searches evaluate as often, from their own quasi-random beginnings, and choose by expected
improvement; the process has a Matern 5/2 kernel of one length scale per axis and a noise, by scikit-learn. Regret: how
far above the minimum the function itself lies where a search ends (with noise: where its belief is lowest among the
evaluated places). Writes `results/search.md` and `.json`.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.stats
from _report import circumstances, table, write_json, write_markdown
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import npax


class Problem(NamedTuple):
    name: str
    f: Callable[[np.ndarray], float]
    bounds: list[tuple[float, float]]
    least: float


def branin(x: np.ndarray) -> float:
    a, b = x
    valley = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def hartmann3(x: np.ndarray) -> float:
    weights = np.array([1.0, 1.2, 3.0, 3.2])
    steepness = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    centres = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
    return -float(weights @ np.exp(-np.sum(steepness * np.square(x - centres), axis=1)))


PROBLEMS = (
    Problem("Branin", branin, [(-5, 10), (0, 15)], 0.397887),
    Problem("Hartmann-3", hartmann3, [(0, 1)] * 3, -3.86278),
)
NOISE = 0.05


def main() -> None:
    options = _options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    about = {**circumstances(), **vars(options)}
    rows = []
    for problem in PROBLEMS:
        low, high = np.array(problem.bounds).T
        places = np.random.default_rng(0).uniform(low, high, (2000, len(low)))
        spread = float(np.std([problem.f(x) for x in places]))
        for noise in (0.0, NOISE * spread):
            row = {"function": problem.name, "noise": noise}
            for name, search in (("npax", by_npax), ("gp", by_process), ("chance", by_chance)):
                started = time.monotonic()
                regrets = [
                    float(problem.f(search(problem, noise, options, seed)) - problem.least)
                    for seed in range(options.seeds)
                ]
                row[name] = {"regrets": sorted(regrets), "seconds": time.monotonic() - started}
            rows.append(row)
            print(rows[-1], flush=True)
            write_json("search", {**about, "rows": rows})
            write_markdown("search", "Searches for a minimum", _text(rows, options), about)


def by_npax(problem: Problem, noise: float, options, seed: int, acquisition="ei") -> np.ndarray:
    f = _noisy(problem, noise, seed)
    counts = {"n_init": options.first, "n_iter": options.chosen}
    found = npax.bayesopt.minimize(
        f, problem.bounds, model=options.model, acquisition=acquisition, random_state=seed, **counts
    )
    return found.x_model if noise else found.x


def by_chance(problem: Problem, noise: float, options, seed: int) -> np.ndarray:
    return by_npax(problem, noise, options, seed, npax.bayesopt.RandomSearch())


def by_process(problem: Problem, noise: float, options, seed: int) -> np.ndarray:
    f, (low, high) = _noisy(problem, noise, seed), np.array(problem.bounds, float).T
    rng, d = np.random.default_rng(seed), len(low)
    x = scipy.stats.qmc.Sobol(d, rng=rng).random(options.first)
    y = np.array([f(low + (high - low) * place) for place in x])
    for _ in range(options.chosen):
        process = _fitted(x, y)
        best = process.predict(x).min()
        candidates = rng.random((1000, d))
        start = candidates[np.argmin(_improvement(candidates, process, best))]
        near = scipy.optimize.minimize(
            lambda place, *given: _improvement(place[None], *given)[0], start, (process, best), bounds=[(0, 1)] * d
        )
        x = np.vstack([x, near.x])
        y = np.append(y, f(low + (high - low) * near.x))
    lowest = np.argmin(_fitted(x, y).predict(x) if noise else y)
    return low + (high - low) * x[lowest]


def _fitted(x, y):
    kernel = ConstantKernel(1.0) * Matern([0.3] * x.shape[1], nu=2.5) + WhiteKernel(1e-4, (1e-8, 1.0))
    return GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)


def _improvement(places, process, best):
    """Minus what is expected."""
    mean, std = process.predict(places, return_std=True)
    std = np.maximum(std, 1e-12)
    z = (best - mean) / std
    return -std * (z * scipy.stats.norm.cdf(z) + scipy.stats.norm.pdf(z))


def _noisy(problem, noise, seed):
    rng = np.random.default_rng([seed, 1])
    return lambda x: problem.f(x) + noise * rng.normal()


def _text(rows, options) -> str:
    header = ["function", "noise", "npax", "fitted process", "chance", "seconds of a search: npax", "fitted process"]
    cells = []
    for row in rows:
        cells.append([row["function"], f"{row['noise']:.2g}"])
        for name in ("npax", "gp", "chance"):
            low, median, high = np.quantile(row[name]["regrets"], [0, 0.5, 1])
            cells[-1].append(f"{median:.4f} ({low:.4f} - {high:.4f})")
        cells[-1] += [f"{row[name]['seconds'] / options.seeds:.1f}" for name in ("npax", "gp")]
    return (
        f"Regret after {options.first} evaluations at quasi-random places and {options.chosen} chosen ones, median "
        f"(least - most) of {options.seeds} seeds.\n\n" + table(header, cells)
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gp-universal", help="a pretrained model's name, or a path of weights")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=8)
    parser.add_argument("--chosen", type=int, default=22)
    return parser.parse_args()


if __name__ == "__main__":
    main()
