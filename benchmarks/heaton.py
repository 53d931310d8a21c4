"""The satellite benchmark of Heaton et al. (2019): land surface temperature under clouds, beside 13 published methods.

    python benchmarks/heaton.py --data heaton_satellite.npz                    # field-universal, zero-shot
    python benchmarks/heaton.py --data heaton_satellite.npz --finetune 100      # adapted to the clear pixels first
    python benchmarks/heaton.py --data heaton_satellite.npz --model gp-universal    # in tiles of observations
    python benchmarks/heaton.py --data heaton_satellite.npz --model kriging         # exact, exponential covariance
    python benchmarks/heaton.py --data heaton_satellite.npz --validate mirrored     # on clear pixels that are hidden

Fits on 105,569 pixels of a 300 x 500 grid and predicts the 42,740 under clouds whose truth is known. `--validate`
hides clear pixels instead, and scores what is hidden: everything that is chosen is chosen there, never on the test
pixels. `moved`: under clouds moved to where it is clear, which leaves small gaps; `mirrored`: under the mirrored
picture of all clouds, as far from data as the test pixels; `strips`: along each border, beyond the data; `drawn`: under
clouds that have to do with what they hide, as the real ones, whose borders are warm, seem to.

The file holds `lon`, `lat`, `mask_temp` (NaN under clouds) and `true_temp`; its source is
github.com/finnlindgren/heatoncomparison. Writes `results/heaton.md` and `.json`, by another name where not the
zero-shot answer of gp-universal is scored: `heaton_field`, `heaton_field_finetuned`, `heaton_kriging` and so on.
"""

import argparse
import time
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from _kriging import Kriging
from _report import circumstances, table, write_json, write_markdown
from scipy.ndimage import binary_dilation, gaussian_filter

import npax
from npax.devices import one_device_per_core
from npax.inference import Planar, fill
from npax.metrics import score_report
from npax.tasks import matern_field
from npax.training import MovedGaps, finetune_pictures

COLUMNS = ("mae", "rmse", "crps", "interval", "coverage", "minutes")
AROUND = 24
"""Pixels, the standard deviation of the weights of what is around one."""
PUBLISHED = {  # table 3 of the paper, as far as it could be confirmed; minutes on the cores that each method used
    "FRK": (1.96, 2.44, 1.44, 14.08, 0.79, 2.32),
    "Gapfill": (1.33, 1.86, 1.17, 34.78, 0.36, 1.39),
    "LatticeKrig": (1.22, 1.68, 0.87, 7.55, 0.96, 27.92),
    "LAGP": (1.65, 2.08, 1.17, 10.81, 0.83, 2.27),
    "Metakriging": (2.08, 2.50, 1.44, 10.77, 0.89, 2888.52),
    "MRA": (1.33, 1.85, 0.94, 8.00, 0.92, 15.61),
    "NNGP conjugate": (1.21, 1.64, 0.85, 7.57, 0.95, 2.06),
    "NNGP response": (1.24, 1.68, 0.87, 7.50, 0.94, 42.85),
    "Partition": (1.41, 1.80, 1.02, 10.49, 0.86, 79.98),
    "Predictive process": (2.15, 2.64, 1.55, 15.51, 0.79, 640.48),
    "SPDE": (1.10, 1.53, 0.83, 8.85, 0.97, 120.33),
    "Tapering": (1.87, 2.45, 1.32, 10.31, 0.93, 133.26),
    "Periodic embedding": (1.29, 1.79, 0.91, 7.44, 0.93, 9.81),
}


def main() -> None:
    options = _options()
    if options.finetune:
        one_device_per_core()
    grid, seen, truth = read(options.data)
    clouds, known = np.isnan(seen), np.isfinite(truth)
    names, rows = [], []
    if options.validate:
        for name, hidden in FOLDS[options.validate](grid, seen, options.seed):
            names.append(name)
            rows.append(score(options, grid, np.where(hidden, np.nan, seen), clouds, hidden, seen))
    else:
        rows.append(score(options, grid, seen, clouds, clouds & known, truth))
    report(options, names, rows)


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Longitude and latitude `[300 500 2]`, what the satellite saw and what is under the clouds `[300 500]`."""
    if not path.exists():
        raise SystemExit(
            f"{path} is not there. Make it from Data/AllSatelliteTemps.RData of "
            "github.com/finnlindgren/heatoncomparison (provided as is): arrays `lon`, `lat`, `mask_temp` and "
            "`true_temp`; then pass it as `--data`."
        )
    file = np.load(path)
    grid = np.stack(np.meshgrid(file["lon"], file["lat"]), axis=-1)
    return grid, file["mask_temp"].astype(float), file["true_temp"].astype(float)


def moved(grid, seen, seed):
    """Clouds moved over clear pixels, four times."""
    clouds, rng = np.isnan(seen), np.random.default_rng(seed)
    for i in range(4):
        hidden = np.zeros_like(clouds)
        hidden[~clouds] = MovedGaps(grid[clouds]).draw(rng, grid[~clouds], Planar())
        yield f"clouds moved, {i}", hidden


def mirrored(grid, seen, seed):
    """All clouds of the mirrored picture."""
    clouds = np.isnan(seen)
    yield "left to right", clouds[:, ::-1] & ~clouds
    yield "top to bottom", clouds[::-1] & ~clouds
    yield "both", clouds[::-1, ::-1] & ~clouds


def strips(grid, seen, seed):
    """A tenth of the picture along each of its borders."""
    x, y = ((a - a.min()) / np.ptp(a) for a in (grid[..., 0], grid[..., 1]))
    for name, hidden in {"west": x < 0.1, "east": x > 0.9, "north": y > 0.9, "south": y < 0.1}.items():
        yield name, hidden & ~np.isnan(seen)


def drawn(grid, seen, seed):
    """Clouds that gather over warm pixels until their borders are as warm as those of the real ones, six times."""
    clouds = np.isnan(seen)
    whole = np.where(clouds, fill(npax.load("field-universal"), seen).mean, seen)
    warmth = whole - gaussian_filter(whole, AROUND, mode="nearest")
    warmth, aim = warmth / warmth.std(), border(seen, ~clouds, clouds)
    for i in range(6):
        shape = {"smoothness": 0.5, "scale": 25.0 + 10 * i, "stretch": 1.0, "angle": 0.0}
        veil = matern_field(jr.key(100 + i + seed), 1024, **{name: jnp.float32(a) for name, a in shape.items()})
        veil = np.asarray(veil)[: clouds.shape[0], : clouds.shape[1]]
        low, high = 0.0, 3.0
        for _ in range(12):
            strength = (low + high) / 2
            drawn_to = veil - strength * warmth
            hidden = (drawn_to < np.quantile(drawn_to, 0.3)) & ~clouds
            low, high = (strength, high) if border(seen, ~clouds & ~hidden, hidden) < aim else (low, strength)
        yield f"clouds drawn, {i}", hidden


def border(seen, visible, gaps) -> float:
    """How much warmer than around them visible pixels are that touch gaps."""
    weights = gaussian_filter(visible.astype(float), AROUND, mode="nearest")
    mean = gaussian_filter(np.where(visible, seen, 0.0), AROUND, mode="nearest") / np.maximum(weights, 1e-6)
    return (seen - mean)[visible & binary_dilation(gaps)].mean()


FOLDS = {function.__name__: function for function in (moved, mirrored, strips, drawn)}


def score(options, grid, seen, clouds, wanted, truth) -> dict:
    started = time.monotonic()
    mean, std, about = METHODS[options.model](options, grid, seen, clouds, wanted)
    minutes = (time.monotonic() - started) / 60
    row = {**score_report(truth[wanted], mean, std), "minutes": minutes, **about}
    row |= {"observed": int(np.isfinite(seen).sum()), "predicted": int(wanted.sum())}
    print({name: round(row[name], 3) for name in COLUMNS}, flush=True)
    return row


def in_tiles(options, grid, seen, clouds, wanted):
    """gp-universal: each pixel from the observations around it."""
    reg, known = npax.NeuralProcessRegressor(tile_size=options.size, progress=True), np.isfinite(seen)
    gaps = MovedGaps(grid[clouds]) if options.finetune else None
    reg.fit(grid[known], seen[known], finetune=options.finetune, gaps=gaps)
    validation = {"validation": reg.finetuned_.validation} if reg.finetuned_ is not None else {}
    return *reg.predict(grid[wanted], return_std=True), validation


def as_picture(options, grid, seen, clouds, wanted):
    """field-universal: the whole picture at once."""
    model, validation = npax.load(options.model), {}
    if options.finetune:
        found = finetune_pictures(model, seen, steps=options.finetune, batch_size=options.batch, seed=options.seed)
        model, validation = found.model, {"validation": found.validation}
    filled = fill(model, seen)
    return filled.mean[wanted], filled.std()[wanted], validation


def exact(options, grid, seen, clouds, wanted):
    """A Gaussian process with all observations, whose scale and noise suit clear pixels under mirrored clouds."""
    mean, std = Kriging(options.scale, options.nugget).fill(seen)
    return mean[wanted], std[wanted], {}


METHODS = {"gp-universal": in_tiles, "field-universal": as_picture, "kriging": exact}


def report(options, names, rows) -> None:
    title = "zero-shot" if not options.finetune else f"fine-tuned, {options.finetune} steps"
    title = f"{options.scale:g} pixels, nugget {options.nugget:g}" if options.model == "kriging" else title
    about = {**circumstances(), "seed": options.seed}
    if options.validate:
        rows = [*rows, {name: float(np.mean([row[name] for row in rows])) for name in COLUMNS}]
        names = [*names, "mean"]
        body = f"Hidden clear pixels are predicted. {FOLDS[options.validate].__doc__}\n\n"
    else:
        names = [f"**{options.model}, {title}**"]
        body = (
            "Published figures: Heaton et al. (2019), table 3, some of them recalled and not checked against the paper."
        )
        body += "\n\n"
        rows = [*rows, *(dict(zip(COLUMNS, row, strict=True)) for row in PUBLISHED.values())]
        names += PUBLISHED
    lines = [[name, *(f"{row[column]:.2f}" for column in COLUMNS)] for name, row in zip(names, rows, strict=True)]
    body += table([f"{options.model}, {title}" if options.validate else "method", *COLUMNS], lines)
    print(body)
    path = write_markdown(options.name, "Land surface temperature under clouds", body, about)
    write_json(options.name, {**about, "rows": dict(zip(names, rows, strict=True))})
    print(path)


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("heaton_satellite.npz"), help="the file described above")
    parser.add_argument(
        "--model",
        choices=METHODS,
        default="field-universal",
        help="of pictures, of points, in tiles, or a Gaussian process",
    )
    parser.add_argument("--batch", type=int, default=2, help="squares in each step of fine-tuning a model of pictures")
    parser.add_argument("--finetune", type=int, default=0, metavar="STEPS", help="adapt to the clear pixels first")
    parser.add_argument("--size", type=int, default=128, help="observations per tile of gp-universal")
    parser.add_argument("--scale", type=float, default=100.0, help="of kriging, in pixels")
    parser.add_argument("--nugget", type=float, default=0.02, help="of kriging: noise, as a share of the variance")
    parser.add_argument("--validate", choices=FOLDS, help="on clear pixels that are hidden, by one of these ways")
    parser.add_argument("--seed", type=int, default=0, help="of the moved clouds")
    parser.add_argument("--name", help="of the result files")
    options = parser.parse_args()
    kinds = [
        "heaton",
        {"field-universal": "field", "kriging": "kriging"}.get(options.model),
        "finetuned" if options.finetune else None,
        options.validate,
    ]
    options.name = options.name or "_".join(filter(None, kinds))
    return options


if __name__ == "__main__":
    main()
