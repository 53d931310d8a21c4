"""Places that are observed again and again: the means that `strategy="auto"` sees, and single observations.

    python benchmarks/repeats.py

Matern 3/2 fields of variance 1, whose length scale goes from 0.3 to 3 in even steps of its logarithm, seen at random
places of [-2, 2]^2 once to `2 r - 1` times each. CRPS of the noiseless field, at those places and at others, above that
of the Gaussian process that knows covariance and noise; "auto" is told the noise as known errors, or not; the other
strategies are not. Writes `results/repeats.md` and `.json`.
"""

import argparse
import warnings

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32

import npax
from npax.metrics import score_report

TARGETS = 200
SIZES = ((10, 10), (40, 3), (40, 30), (150, 3), (150, 30), (600, 10))
"""Places, and how often each is observed, on average."""
NOISE = (0.3, 1.0, 3.0)
METHODS = {"auto": {}, "auto, told": {}, "exact": {"strategy": "exact"}, "tiled": {"strategy": "tiled"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", type=int, default=10, help="of each kind")
    options = parser.parse_args()
    lengths = np.exp(np.log(0.3) + np.log(10) * (np.arange(options.fields) + 0.5) / options.fields)
    rows = []
    for places, repeats in SIZES:
        for noise in NOISE:
            found = np.array(
                [score(np.random.default_rng(i), places, repeats, noise, each) for i, each in enumerate(lengths)]
            )
            rows.append({"places": places, "repeats": repeats, "noise": noise, **summary(found)})
            print(rows[-1], flush=True)
            about = {**circumstances(), "fields": options.fields}
            write_json("repeats", {**about, "rows": rows})
            write_markdown("repeats", "Places that are observed again and again", _text(rows), about)


def score(rng: np.random.Generator, places: int, repeats: int, noise: float, length: float) -> np.ndarray:
    """CRPS and coverage at other places and at those that were observed, `[methods 2 2]`; last of the best."""
    p = rng.uniform(-2, 2, (places + TARGETS, 2))
    k = matern32(p, length)
    field, number = draw(rng, k), rng.integers(1, 2 * repeats, places)
    x, which = np.repeat(p[:places], number, axis=0), np.repeat(np.arange(places), number)
    y = field[which] + noise * rng.normal(size=len(x))
    means = np.bincount(which, y) / number
    answers = []
    for name, options in METHODS.items():
        reg = npax.NeuralProcessRegressor(**options).fit(x, y, error=noise if "told" in name else None)
        answers.append(reg.predict(p, return_std=True, include_noise=False))
    # The process is asked at all places, of which the first are those of its observations.
    answers.append(
        best_answer(np.block([[k[:places, :places], k[:places]], [k[:, :places], k]]), means, noise / np.sqrt(number))
    )
    found = []
    for mean, std in answers:
        of = [score_report(field[at], mean[at], std[at]) for at in (slice(places, None), slice(places))]
        found.append([[report["crps"], report["coverage"]] for report in of])
    return np.array(found)


def summary(found: np.ndarray) -> dict:
    """Of `[fields methods 2 2]`: CRPS of all fields together above that of the best, and coverage."""
    crps, coverage = found[..., 0].sum(axis=0), found[..., 1].mean(axis=0)
    of_each = {}
    for i, name in enumerate(METHODS):
        above = (crps[i] / crps[-1] - 1).tolist()
        of_each[name] = {"elsewhere": above[0], "there": above[1], "coverage": coverage[i].tolist()}
    return of_each


def _text(rows):
    cells = []
    for row in rows:
        cells.append([f"{row['places']} places, {row['repeats']} times", f"{row['noise']:g}"])
        cells[-1] += [f"{100 * row[name]['elsewhere']:.0f}, {100 * row[name]['there']:.0f} %" for name in METHODS]
        cells[-1] += [
            ", ".join(f"{100 * each:.1f} %" for each in row[name]["coverage"]) for name in ("auto", "auto, told")
        ]
    header = ["observations", "noise", *METHODS, "auto: coverage", "auto, told: coverage"]
    return (
        "CRPS of the noiseless field above the best, elsewhere and at the observed places, and the coverage of "
        "95 % intervals there.\n\n" + table(header, cells)
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
