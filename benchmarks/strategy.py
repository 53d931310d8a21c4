"""Exact or tiled: seconds and accuracy of both, over numbers of observations and targets.

    python benchmarks/strategy.py    # needs an otherwise idle machine

What `npax.inference.strategy` decides by, in the plane (`noise.py` has accuracy on lines and in space, and with more
noise). Fields drawn as sums of random waves (Matern 3/2, length scale log-uniform from 0.03 to 0.5 of the side), noise
of a tenth of their standard deviation; the same for both strategies. Seconds: the best of `--repeats` calls of a fitted
predictor, compiled before, conditioning included. Writes `results/strategy.md` and `.json`.
"""

import argparse
import time

import numpy as np
from _report import circumstances, table, write_json, write_markdown

import npax
from npax.inference import Exact, Tiled
from npax.inference.tile import SHARE

PAIRS = 1e7
"""Per second, about, on two CPU cores."""
KINDS = ("exact", "tiled")
TOKEN = 200
"""What the network costs for a point that attends to nothing, in pairs of points."""
REACHED = 1.7
"""Cells that reach a target, in the plane."""
PADDED = 2
"""What tiles compute for a target and a cell that reaches it, padding and blending included, in targets."""


def exact_work(nc: int, nt: int) -> float:
    """Pairs of points that attend to each other in a block, and as many as the rest is worth."""
    return (nc + nt) * (nc + TOKEN)


def tiled_work(nc: int, nt: int, size: int) -> float:
    """The same, of tiles: each cell that has targets is conditioned once."""
    if nc <= size:
        return exact_work(nc, nt)
    cells = min(2 * SHARE * nc / size, REACHED * nt)
    return (cells * size + PADDED * REACHED * nt) * (size + TOKEN)


def main() -> None:
    options = _options()
    model, rows = npax.load("gp-universal"), []
    for nc in options.context:
        for nt in options.targets:
            rows.append(measure(model, nc, nt, options))
            print(rows[-1], flush=True)
            if nt == options.targets[-1]:
                rows[-1] |= accuracy(model, nc, options)
                print(rows[-1], flush=True)
            about = circumstances()
            write_json("strategy", {**about, "rows": rows})
            write_markdown("strategy", "Exact or tiled", _text(rows), about)


def measure(model, nc: int, nt: int, options) -> dict:
    """Seconds of both strategies; of the exact one only where it would take less than `--limit` seconds."""
    x, y, xt, _ = field(np.random.default_rng(0), nc, nt)
    row = {"nc": nc, "nt": nt}
    if exact_work(nc, nt) < options.limit * PAIRS:
        row["exact"] = _best(lambda: Exact(model, x, y), xt, options.repeats)
    row["tiled"] = _best(lambda: Tiled(model, x, y, size=128), xt, options.repeats)
    return row


def accuracy(model, nc: int, options) -> dict:
    """Mean NLL and RMSE of the noiseless field at 1,000 places, and their standard errors over fields."""
    scores: dict[str, list] = {"exact": [], "tiled": []}
    for seed in range(options.fields):
        x, y, xt, truth = field(np.random.default_rng(seed), nc, 1000)
        for name, kind in (("exact", Exact), ("tiled", Tiled)):
            if name == "exact" and exact_work(nc, 1000) > options.limit * PAIRS / options.fields:
                continue
            scores[name].append(_scores(kind(model, x, y)(xt), truth))
    out = {}
    for name, found in scores.items():
        if found:
            mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
            out |= {f"{name}_nll": mean[0], f"{name}_nll_error": error[0], f"{name}_rmse": mean[1]}
    return out


def _scores(found, truth):
    """NLL and RMSE of the noiseless field."""
    error, variance = found.mean - truth, found.function_variance
    nll = 0.5 * np.mean(np.square(error) / variance + np.log(2 * np.pi * variance))
    return nll, np.sqrt(np.mean(np.square(error)))


def field(rng, nc: int, nt: int, waves: int = 1000):
    """Observations `x [nc 2]`, `y [nc 1]`, targets `[nt 2]` and their true values `[nt 1]`."""
    scale = np.exp(rng.uniform(np.log(0.03), np.log(0.5)))
    frequency = rng.normal(size=(2, waves)) / np.sqrt(rng.chisquare(3, waves) / 3) / scale  # the spectrum of Matern 3/2
    phase = rng.uniform(0, 2 * np.pi, waves)
    x, xt = rng.uniform(size=(nc, 2)), rng.uniform(size=(nt, 2))
    values = [_in_parts(lambda a: np.cos(a @ frequency + phase).sum(1) * np.sqrt(2 / waves), a) for a in (x, xt)]
    return x, (values[0] + 0.1 * rng.normal(size=nc))[:, None], xt, values[1][:, None]


def _in_parts(function, a, size=4096):
    return np.concatenate([function(a[start : start + size]) for start in range(0, len(a), size)])


def _best(make, xt, repeats):
    make()(xt)
    seconds = []
    for _ in range(repeats):
        predictor = make()
        started = time.perf_counter()
        predictor(xt)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _text(rows):
    header = ["observations", "targets", "exact, s", "tiled, s", "exact / tiled", "the same, estimated"]
    header += ["exact, M pairs/s", "tiled, M pairs/s"]
    cells = []
    for row in rows:
        exact, tiled = row.get("exact"), row["tiled"]
        works = exact_work(row["nc"], row["nt"]), tiled_work(row["nc"], row["nt"], 128)
        cells.append([f"{row['nc']:,}", f"{row['nt']:,}", _number(exact), _number(tiled)])
        cells[-1] += [_number(exact and exact / tiled), _number(works[0] / works[1])]
        cells[-1] += [_number(exact and works[0] / exact / 1e6), _number(works[1] / tiled / 1e6)]
    text = table(header, cells)
    scored = [row for row in rows if "tiled_nll" in row]
    if scored:
        header = ["observations", "exact: NLL", "tiled: NLL", "exact: RMSE", "tiled: RMSE"]
        text += "\nAccuracy, noiseless field (standard deviation 1); ± over fields:\n\n" + table(
            header,
            [
                [f"{row['nc']:,}"]
                + [f"{row[f'{s}_nll']:.3f} ± {row[f'{s}_nll_error']:.3f}" if f"{s}_nll" in row else "" for s in KINDS]
                + [f"{row[f'{s}_rmse']:.4f}" if f"{s}_rmse" in row else "" for s in KINDS]
                for row in scored
            ],
        )
    return text


def _number(value):
    return "" if value is None else f"{value:.3g}"


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--context", nargs="+", type=int, default=[250, 500, 1000, 2000, 4000, 8000, 16000])
    parser.add_argument("--targets", nargs="+", type=int, default=[1, 1000, 10_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fields", type=int, default=8, help="for the accuracy")
    parser.add_argument("--limit", type=float, default=60, help="seconds, about, up to which exact is tried")
    return parser.parse_args()


if __name__ == "__main__":
    main()
