"""Bayesian optimisation of well-known functions: the shipped model beside a Gaussian process fitted at every step.

    python benchmarks/search.py

Branin and Hartmann-3 (their minima are known), exact, with Gaussian noise of a twentieth of their standard deviation
over the box, and with noise of a fiftieth or a half of it, by chance, whose size is told with each value or not; and
exact, in batches of four, whose values are known together. Both searches evaluate as often, from their own quasi-
random beginnings, and choose by expected improvement; the process has a Matern 5/2 kernel of one length scale per
axis and a noise, by scikit-learn. Regret: how far above the minimum the function itself lies where a search ends
(with noise: where its belief is lowest among the places). To both a place that is asked for in a batch counts as
answered by what they predict there.
Writes `results/search.md` and `.json`.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
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
ERRORS = (0.02, 0.5)
"""Standard deviations of noise that is known; of these and of `NOISE` the unit is that of the function over its box."""
BATCH = 4
Evaluation = Callable[[np.ndarray], tuple[float, float]]
"""A value of the function, and its known standard error: zero where none is told."""


def main() -> None:
    options = _options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    about = {**circumstances(), **vars(options)}
    rows, of_errors, of_batches = [], [], []
    for problem in PROBLEMS:
        low, high = np.array(problem.bounds).T
        places = np.random.default_rng(0).uniform(low, high, (2000, len(low)))
        spread = float(np.std([problem.f(x) for x in places]))
        for noise in (0.0, NOISE * spread):
            searches = {"npax": by_npax, "gp": by_process, "chance": by_chance}
            run = {name: partial(_plain, search, problem, noise) for name, search in searches.items()}
            rows.append({"function": problem.name, "noise": noise, **_regrets(problem, run, options, options.seeds)})
        run = {}
        for told in (True, False):
            how = "told" if told else "not told"
            run[f"npax, {how}"] = partial(_of_errors, by_asking, problem, spread, told)
            run[f"gp, {how}"] = partial(_of_errors, by_process, problem, spread, told)
        of_errors.append({"function": problem.name, **_regrets(problem, run, options, 3 * options.seeds)})
        searches = {"npax": by_asking, "gp": by_process}
        run = {name: partial(_plain, partial(search, batch=BATCH), problem, 0.0) for name, search in searches.items()}
        of_batches.append({"function": problem.name, **_regrets(problem, run, options, options.seeds)})
        write_json("search", {**about, "rows": rows, "known_errors": of_errors, "batches": of_batches})
        write_markdown("search", "Searches for a minimum", _text(rows, of_errors, of_batches, options), about)


def _regrets(problem, run, options, seeds):
    """All regrets and the seconds of each way to search, which gives the place where it ends for options and a seed."""
    found = {}
    for name, search in run.items():
        started = time.monotonic()
        ends = [search(options, seed) for seed in range(seeds)]
        regrets = sorted(float(problem.f(x) - problem.least) for x in ends)
        found[name] = {"regrets": regrets, "seconds": time.monotonic() - started}
        print(problem.name, name, np.median(regrets), flush=True)
    return found


def _plain(search, problem, noise, options, seed):
    rng = np.random.default_rng([seed, 1])
    return search(lambda x: (problem.f(x) + noise * rng.normal(), 0.0), problem, noise > 0, options, seed)


def _of_errors(search, problem, spread, told, options, seed):
    rng = np.random.default_rng([seed, 2])

    def evaluate(x):
        error = spread * float(rng.choice(ERRORS))
        return problem.f(x) + error * rng.normal(), error if told else 0.0

    return search(evaluate, problem, True, options, seed)


def by_npax(f: Evaluation, problem: Problem, noisy: bool, options, seed: int, acquisition="ei") -> np.ndarray:
    counts = {"n_init": options.first, "n_iter": options.chosen}
    found = npax.bayesopt.minimize(
        lambda x: f(x)[0], problem.bounds, model=options.model, acquisition=acquisition, random_state=seed, **counts
    )
    return found.x_model if noisy else found.x


def by_chance(f: Evaluation, problem: Problem, noisy: bool, options, seed: int) -> np.ndarray:
    return by_npax(f, problem, noisy, options, seed, npax.bayesopt.RandomSearch())


def by_asking(f: Evaluation, problem: Problem, noisy: bool, options, seed: int, batch: int = 1) -> np.ndarray:
    optimizer = npax.bayesopt.Optimizer(problem.bounds, n_init=options.first, model=options.model, random_state=seed)
    for done in range(0, options.first + options.chosen, batch):
        asked = [optimizer.ask() for _ in range(min(batch, options.first + options.chosen - done))]
        for x in asked:
            y, error = f(x)
            optimizer.tell(x, y, error=error)
    return optimizer.recommend()[0] if noisy else optimizer.result().x


def by_process(f: Evaluation, problem: Problem, noisy: bool, options, seed: int, batch: int = 1) -> np.ndarray:
    low, high = np.array(problem.bounds, float).T
    rng, d = np.random.default_rng(seed), len(low)
    x = scipy.stats.qmc.Sobol(d, rng=rng).random(options.first)
    y, error = np.array([f(low + (high - low) * place) for place in x]).T
    for done in range(0, options.chosen, batch):
        process, asked = _fitted(x, y, error), np.empty((0, d))
        for _ in range(min(batch, options.chosen - done)):
            foreseen = process
            if len(asked):
                told = np.append(y, process.predict(asked))
                foreseen = _fitted(np.vstack([x, asked]), told, np.pad(error, (0, len(asked))), process.kernel_)
            asked = np.vstack([asked, _promising(foreseen, foreseen.predict(x).min(), rng, d)])
        found = np.array([f(low + (high - low) * place) for place in asked])
        x, y, error = np.vstack([x, asked]), np.append(y, found[:, 0]), np.append(error, found[:, 1])
    lowest = np.argmin(_fitted(x, y, error).predict(x) if noisy else y)
    return low + (high - low) * x[lowest]


def _promising(process, best, rng, d):
    candidates = rng.random((1000, d))
    start = candidates[np.argmin(_improvement(candidates, process, best))]
    near = scipy.optimize.minimize(
        lambda place, *given: _improvement(place[None], *given)[0], start, (process, best), bounds=[(0, 1)] * d
    )
    return near.x


def _fitted(x, y, error, kernel=None):
    """The process of greatest likelihood, or that of a `kernel`."""
    known = np.square(error / np.std(y))  # of values that are standardised
    options = {"alpha": 1e-10 + known, "normalize_y": True}
    if kernel is not None:
        return GaussianProcessRegressor(kernel, optimizer=None, **options).fit(x, y)
    kernel = ConstantKernel(1.0) * Matern([0.3] * x.shape[1], nu=2.5) + WhiteKernel(1e-4, (1e-8, 1.0))
    return GaussianProcessRegressor(kernel, **options).fit(x, y)


def _improvement(places, process, best):
    """Minus what is expected."""
    mean, std = process.predict(places, return_std=True)
    std = np.maximum(std, 1e-12)
    z = (best - mean) / std
    return -std * (z * scipy.stats.norm.cdf(z) + scipy.stats.norm.pdf(z))


def _text(rows, of_errors, of_batches, options) -> str:
    header = ["function", "noise", "npax", "fitted process", "chance", "seconds of a search: npax", "fitted process"]
    cells = []
    for row in rows:
        cells.append([row["function"], f"{row['noise']:.2g}"])
        cells[-1] += [_spread(row[name]["regrets"]) for name in ("npax", "gp", "chance")]
        cells[-1] += [f"{row[name]['seconds'] / options.seeds:.1f}" for name in ("npax", "gp")]
    ways = ("npax, told", "npax, not told", "gp, told", "gp, not told")
    return (
        f"Regret after {options.first} evaluations at quasi-random places and {options.chosen} chosen ones, median "
        f"(least - most) of {options.seeds} seeds.\n\n{table(header, cells)}\n"
        f"Noise of {ERRORS[0]:g} or {ERRORS[1]:g} of the function's standard deviation, by chance for each value; "
        f"{3 * options.seeds} seeds:\n\n"
        + table(
            ["function", *(name.replace("gp", "fitted process") for name in ways)],
            [[row["function"], *(_spread(row[name]["regrets"]) for name in ways)] for row in of_errors],
        )
        + f"\nExact, in batches of {BATCH}, {options.seeds} seeds:\n\n"
        + table(
            ["function", "npax", "fitted process"],
            [[row["function"], *(_spread(row[name]["regrets"]) for name in ("npax", "gp"))] for row in of_batches],
        )
    )


def _spread(regrets):
    low, median, high = np.quantile(regrets, [0, 0.5, 1])
    return f"{median:.4f} ({low:.4f} - {high:.4f})"


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gp-universal", help="a pretrained model's name, or a path of weights")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=8)
    parser.add_argument("--chosen", type=int, default=22)
    return parser.parse_args()


if __name__ == "__main__":
    main()
