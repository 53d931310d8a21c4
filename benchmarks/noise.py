"""Few observations and many, with little noise and much: what `strategy="auto"` sees, and each strategy by itself.

    python benchmarks/noise.py

Fields of variance 1 with a Matern 3/2 covariance, whose length scale goes from 0.3 to 3 in even steps of its logarithm,
observed with noise at uniform places of [-2, 2]^d. CRPS of the noiseless field at 300 other places above that of the
Gaussian process that knows covariance and noise. Writes `results/noise.md` and `.json`.
"""

import argparse
import time
import warnings

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32

import npax
from npax.metrics import score_report

TARGETS = 300
STRATEGIES = ("auto", "exact", "tiled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", nargs="+", type=int, default=[300, 1000, 4000])
    parser.add_argument("--noise", nargs="+", type=float, default=[0.1, 0.3, 1.0, 2.0])
    parser.add_argument("--fields", type=int, default=6, help="of each kind")
    options = parser.parse_args()
    rows = []
    for d in (1, 2, 3):
        for n in options.observations:
            for noise in options.noise:
                lengths = np.exp(np.log(0.3) + np.log(10) * (np.arange(options.fields) + 0.5) / options.fields)
                found = [score(np.random.default_rng(seed), d, n, noise, each) for seed, each in enumerate(lengths)]
                rows.append({"d": d, "n": n, "noise": noise, **_mean(found)})
                print(rows[-1], flush=True)
                about = {**circumstances(), "fields": options.fields}
                write_json("noise", {**about, "rows": rows})
                write_markdown("noise", "Observations with little noise and with much", _text(rows), about)


def score(rng: np.random.Generator, d: int, n: int, noise: float, length: float) -> dict[str, float | str]:
    """CRPS of the best and of each strategy; of "auto" also what it took, how many observations it averaged, seconds,
    coverage of 95 % intervals of the field and of new observations."""
    x = rng.uniform(-2, 2, (n + TARGETS, d))
    k = matern32(x, length)
    field = draw(rng, k)
    y, truth, new = field[:n] + noise * rng.normal(size=n), field[n:], field[n:] + noise * rng.normal(size=TARGETS)
    found = {"best": score_report(truth, *best_answer(k, y, noise))["crps"]}
    for strategy in STRATEGIES:
        started = time.perf_counter()
        reg = npax.NeuralProcessRegressor(strategy=strategy).fit(x[:n], y)
        report = score_report(truth, *reg.predict(x[n:], return_std=True, include_noise=False))
        found[strategy] = report["crps"]
        if strategy == "auto":
            found |= {"seconds": time.perf_counter() - started, "taken": reg.strategy_, "averaged": reg.averaged_[0]}
            found |= {"coverage": report["coverage"], "of_new": reg.score_report(x[n:], new)["coverage"]}
    return found


def _mean(found):
    mean = {name: float(np.mean([one[name] for one in found])) for name in ("best", *STRATEGIES, "coverage", "of_new")}
    middle = {name: float(np.median([one[name] for one in found])) for name in ("seconds", "averaged")}
    return mean | middle | {"tiled_by_auto": sum(one["taken"] == "tiled" for one in found)}


def _text(rows):
    headings = ["observations", "noise", "best CRPS", *STRATEGIES, "auto: averaged", "tiled", "coverage", "of new", "s"]
    cells = []
    for row in rows:
        above = [f"{100 * (row[strategy] / row['best'] - 1):.0f} %" for strategy in STRATEGIES]
        cells.append([f"{row['n']:,} in {row['d']}-D", f"{row['noise']:g}", f"{row['best']:.3f}", *above])
        cells[-1] += [f"{row['averaged']:.0f}", str(row["tiled_by_auto"])]
        cells[-1] += [f"{100 * row[name]:.1f} %" for name in ("coverage", "of_new")] + [f"{row['seconds']:.2f}"]
    return (
        'CRPS of the noiseless field above the best. Of "auto": the median of how many observations it averaged and of '
        "its seconds (the first call of a shape compiles), how many fields it took tiles for, and the coverage of 95 % "
        "intervals of the field and of new observations.\n\n" + table(headings, cells)
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
