"""Positive values: the shipped model of their logarithms beside that of the values themselves.

    python benchmarks/lognormal.py --data FOLDER

Values whose logarithms are Matern 3/2 fields in the unit square (length scale 0.2) with noise, at 150 places; scored
are new observations at 250 others, and averages over a 16 by 16 lattice and its quarter. Beside `LogNormalRegressor`:
`NeuralProcessRegressor` of the values; a scikit-learn Gaussian process that is fitted to the logarithms (Matern 3/2,
white noise); and the best possible, the process that knows the covariance of the logarithms. And zinc at the Meuse,
where FOLDER holds `meuse.csv` (of the R package sp): half of 155 sites, drawn at random, predict the others. Writes
`results/lognormal.md` and `.json`.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import npax
from npax import metrics

SPREADS = (0.5, 1.0, 1.5)
"""Standard deviations of the logarithm, whose noise is 0.3 of these."""
SCALE, NOISE, SEEN, NEW, SIDE = 0.2, 0.3, 150, 250, 16
METHODS = ("npax", "npax, of the values", "GP, fitted to logarithms", "best possible")


def simulated(spread: float, rng):
    """Places and values: observations, new ones, and those on a lattice, without noise."""
    axis = (np.arange(SIDE) + 0.5) / SIDE
    x = np.concatenate([rng.uniform(size=(SEEN + NEW, 2)), np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)])
    k = spread**2 * matern32(x, SCALE)
    level = draw(rng, k)
    noisy = level[: SEEN + NEW] + NOISE * spread * rng.normal(size=SEEN + NEW)
    return x, np.exp(noisy), level[SEEN + NEW :], k


def of_fields(spread: float, rng):
    """Scores of each method, and of ours where averages are."""
    x, y, lattice, k = simulated(spread, rng)
    seen, new = slice(0, SEEN), slice(SEEN, SEEN + NEW)
    found = predicted(x[seen], y[seen], x[new], y[new])
    mean, std = best_answer(k[: SEEN + NEW, : SEEN + NEW], np.log(y[seen]), NOISE * spread, include_noise=True)
    found["best possible"] = of_levels(y[new], mean, std) | {"seconds": 0.0}
    w = np.stack([np.ones(SIDE**2), (x[SEEN + NEW :] < 0.5).all(axis=1) * 1.0])
    # averages of what is observed, of which noise is a part
    true = (w / w.sum(axis=1, keepdims=True)) @ np.exp(lattice + np.square(NOISE * spread) / 2)
    reg = npax.LogNormalRegressor().fit(x[seen], y[seen])
    low, high = reg.predict_average_quantiles(x[SEEN + NEW :], [0.025, 0.975], w).T
    return found, np.mean((low <= true) & (true <= high))


def predicted(x, y, at, truth):
    found = {}
    for method, fit in zip(METHODS, (logarithms, values, process), strict=False):
        started = time.monotonic()
        scores = fit(x, y, at, truth)
        found[method] = scores | {"seconds": time.monotonic() - started}
    return found


def logarithms(x, y, at, truth):
    return of_levels(truth, *npax.NeuralProcessRegressor().fit(x, np.log(y)).predict(at, return_std=True))


def values(x, y, at, truth):
    mean, std = npax.NeuralProcessRegressor().fit(x, y).predict(at, return_std=True)
    below = np.mean(mean + norm.ppf(0.025) * std < 0)
    return {**metrics.score_report(truth, mean, std), "below zero": below}


def process(x, y, at, truth):
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(1.0, (1e-2, 1e2), nu=1.5) + WhiteKernel(0.1, (1e-6, 1e1))
    level, unit = np.log(y), x.std()
    gp = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp.fit(x / unit, (level - level.mean()) / level.std())
    mean, std = gp.predict(at / unit, return_std=True)  # the noise of the kernel included
    return of_levels(truth, level.mean() + level.std() * mean, level.std() * std)


def of_levels(truth, mean, std):
    from npax.estimators.lognormal import score_report

    return {**score_report(truth, mean, std), "below zero": 0.0}


def zinc(folder: Path, repeats: int):
    """Scores of each method in each repeat."""
    soil = np.genfromtxt(folder / "meuse.csv", delimiter=",", names=True, usecols=("x", "y", "zinc"))
    x, y = np.stack([soil["x"], soil["y"]], axis=1), soil["zinc"]
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        some, others = order[: len(y) // 2], order[len(y) // 2 :]
        yield predicted(x[some], y[some], x[others], y[others])


def summary(draws):
    """Means over draws; of CRPS the median, too, for few values may be most of the mean."""
    methods = [method for method in METHODS if method in draws[0]]
    return {
        method: {name: float(np.mean([draw[method][name] for draw in draws])) for name in draws[0][method]}
        | {"crps_median": float(np.median([draw[method]["crps"] for draw in draws]))}
        for method in methods
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of meuse.csv")
    parser.add_argument("--repeats", type=int, default=30, help="draws of each kind, and splits of the sites")
    options = parser.parse_args()
    results, averages = {}, {}
    for spread in SPREADS:
        rng = np.random.default_rng(0)
        draws, held = zip(*(of_fields(spread, rng) for _ in range(options.repeats)), strict=True)
        name = f"logarithms of standard deviation {spread:g}"
        results[name], averages[name] = summary(draws), float(np.mean(held))
        print(name, results[name], averages[name], flush=True)
    if options.data is not None:
        results["zinc at the Meuse"] = summary(list(zinc(options.data, options.repeats)))
        print(results["zinc at the Meuse"], flush=True)
    about = circumstances()
    write_json("lognormal", {**about, "results": results, "averages": averages, "repeats": options.repeats})
    write_markdown("lognormal", "Positive values", _text(results, averages, options.repeats), about)


def _text(results, averages, repeats):
    header = ["values", "method", "CRPS", "its median", "RMSE", "95 % intervals hold", "go below zero", "seconds"]
    rows = [
        [
            *(name, method, f"{found['crps']:.4g}", f"{found['crps_median']:.4g}", f"{found['rmse']:.4g}"),
            *(f"{100 * found[share]:.0f} %" for share in ("coverage", "below zero")),
            f"{found['seconds']:.2f}",
        ]
        for name, each in results.items()
        for method, found in each.items()
    ]
    of_averages = [[name, f"{100 * held:.0f} %"] for name, held in averages.items()]
    return "\n\n".join(
        [
            f"Means over {repeats} draws or splits.",
            table(header, rows),
            "Averages over the square and its quarter, `LogNormalRegressor.predict_average_quantiles`:",
            table(["values", "95 % intervals hold"], of_averages),
        ]
    )


if __name__ == "__main__":
    main()
