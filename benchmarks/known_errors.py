"""Observations whose noise is known, each its own: averages of few and many, instruments good and bad.

    python benchmarks/known_errors.py

Matern 3/2 fields of variance 1 on the unit interval and square, of the length scale 0.5, seen at random places with
errors of known standard deviations and no other noise. Asked for is the noiseless field elsewhere. Beside
`NeuralProcessRegressor`, told the errors and not: scikit-learn's Gaussian process, told them (`alpha`) and not (white
noise), of the same kernel with variance and length fitted (two restarts), up to 400 observations; and the process that
knows all, the best possible. Writes `results/known_errors.md` and `.json`.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32
from designs import options_of
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import npax
from npax.metrics import score_report

TARGETS, SCALE = 200, 0.5
SIZES = ((40, 1), (100, 2), (400, 2), (3000, 2))
FITTED_UP_TO = 400  # a Gaussian process of 3,000 observations takes minutes
METHODS = ("npax, told", "npax, not told", "GP, told", "GP, not told")


def averages(rng: np.random.Generator, n: int) -> np.ndarray:
    """averages of 1 to 100 values with a noise as strong as the field"""
    return 1 / np.sqrt(np.floor(100 ** rng.uniform(size=n)))


def two_instruments(rng: np.random.Generator, n: int) -> np.ndarray:
    """one instrument in five has an error of 0.1, the others of 1"""
    return np.where(rng.uniform(size=n) < 0.2, 0.1, 1.0)


def equal(rng: np.random.Generator, n: int) -> np.ndarray:
    """all errors 0.5"""
    return np.full(n, 0.5)


ERRORS: tuple[Callable, ...] = (averages, two_instruments, equal)


def main() -> None:
    options = options_of(__doc__)
    rows = []
    for errors in ERRORS:
        for n, d in SIZES:
            found = np.array([score(options.model, errors, n, d, seed) for seed in range(options.fields)])
            rows.append({"errors": errors.__doc__, "n": n, "d": d, **summary(found)})
            print(rows[-1], flush=True)
            about = {**circumstances(), "model": options.model, "fields": options.fields}
            write_json("known_errors", {**about, "rows": rows})
            write_markdown("known_errors", "Observations whose noise is known", _text(rows), about)


def score(model: str, errors: Callable, n: int, d: int, seed: int) -> list[list[float]]:
    """CRPS, coverage of 95 % intervals and seconds of each method, or of ours alone where there are too many
    observations for the others, and of the process that knows."""
    rng = np.random.default_rng(seed)
    x, xt, error = rng.uniform(size=(n, d)), rng.uniform(size=(TARGETS, d)), errors(rng, n)
    k = matern32(np.concatenate([x, xt]), SCALE)
    function = draw(rng, k)
    y = function[:n] + error * rng.normal(size=n)
    answers = [_timed(ours, model, x, y, e, xt) for e in (error, None)]
    if n <= FITTED_UP_TO:
        answers += [_timed(fitted, x, y, e, xt) for e in (error, None)]
    answers.append(_timed(best_answer, k, y, error))
    reports = ((score_report(function[n:], *moments), seconds) for moments, seconds in answers)
    return [[report["crps"], report["coverage"], seconds] for report, seconds in reports]


def _timed(method, *args):
    start = time.perf_counter()
    found = method(*args)
    return found, time.perf_counter() - start


def ours(model, x, y, error, xt):
    reg = npax.NeuralProcessRegressor(model).fit(x, y, error=error)
    return reg.predict(xt, return_std=True, include_noise=False)


def fitted(x, y, error, xt):
    """The Gaussian process, fitted: of the field, without the white noise that it may have found."""
    field = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(0.5, (1e-2, 1e2), nu=1.5)
    white = WhiteKernel(0.1, (1e-6, 1e2))
    told = {"alpha": np.square(error)} if error is not None else {"alpha": 1e-10}
    gp = GaussianProcessRegressor(
        field if error is not None else field + white,
        normalize_y=error is None,
        n_restarts_optimizer=2,
        random_state=0,
        **told,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp.fit(x, y)
    mean, std = gp.predict(xt, return_std=True)
    if error is None:
        unit = gp._y_train_std
        std = np.sqrt(np.maximum(np.square(std) - gp.kernel_.k2.noise_level * unit**2, 1e-12))
    return mean, std


def summary(found: np.ndarray) -> dict:
    """Of `[fields methods scores]`: how much CRPS is lost to the best, with its standard error, coverage, seconds."""
    crps = found[:, :, 0]
    above = crps[:, :-1] / crps[:, -1:] - 1
    of_method = {}
    for i, name in enumerate(METHODS[: above.shape[1]]):
        of_method[name] = {
            "above": above[:, i].mean().item(),
            "above_error": above[:, i].std(ddof=1).item() / len(above) ** 0.5,
            "coverage": found[:, i, 1].mean().item(),
            "seconds": float(np.median(found[:, i, 2])),
        }
    return {"best_crps": crps[:, -1].mean().item(), "best_coverage": found[:, -1, 1].mean().item(), **of_method}


def _text(rows) -> str:
    header = ["errors", "observations", *(f"{name}: CRPS above the best" for name in METHODS)]
    header += [f"{name}: coverage" for name in METHODS]
    cells = []
    for row in rows:
        cells.append([row["errors"], f"{row['n']} in {row['d']}-D"])
        cells[-1] += [f"{row[m]['above']:.1%} ± {row[m]['above_error']:.1%}" if m in row else "" for m in METHODS]
        cells[-1] += [f"{row[m]['coverage']:.1%}" if m in row else "" for m in METHODS]
    return (
        "The noiseless field, without training of the network. CRPS above that of the Gaussian process that knows "
        "kernel and errors, means over fields, ± standard error; coverage of 95 % intervals.\n\n" + table(header, cells)
    )


if __name__ == "__main__":
    main()
