"""Narrow features in a smooth field with noise: whether they are kept, by which strategy and size of tiles.

    python benchmarks/features.py

A spectrum with absorption lines, a series with dips, a map with hot spots. Each is a smooth field plus features of a
height and a width; noise has the standard deviation 1. Scores are of the noiseless field at the places of the features
(nearer than two of their standard deviations) and everywhere. Writes `results/features.md` and `.json`.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from _report import circumstances, table, write_json, write_markdown

import npax

OPTIONS = {
    "default": {},
    "tile_size=64": {"tile_size": 64},
    "tile_size=32": {"tile_size": 32},
    'tile_size="auto"': {"tile_size": "auto"},
    'strategy="exact"': {"strategy": "exact"},
}


class Field(NamedTuple):
    """`places(rng) -> [n d]`, in the unit cube; a smooth field of the standard deviation `spread`, and `number` bumps
    of the `height` and the `width`, both in units of the noise and of the cube."""

    name: str
    places: Callable[[np.random.Generator], np.ndarray]
    spread: float
    number: int
    height: float
    width: float

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places, the field there, and which of them are within a feature."""
        x = self.places(rng)
        waves = rng.normal(size=(20, x.shape[1])) * 3.0
        smooth = np.cos(2 * np.pi * rng.uniform(size=20) + x @ waves.T).mean(axis=1) * np.sqrt(40) * self.spread
        middles = (np.arange(self.number) + 0.5) / self.number
        others = rng.uniform(0.2, 0.8, (self.number, x.shape[1] - 1))
        middles = np.column_stack([middles + rng.uniform(-0.1, 0.1, self.number) / self.number, others])
        away = np.linalg.norm(x[:, None] - middles, axis=-1) / self.width
        return x, smooth + self.height * np.exp(-0.5 * np.square(away)).sum(axis=1), away.min(axis=1) < 2


def even(n: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: np.linspace(0, 1, n)[:, None]


def anywhere(n: int, d: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.uniform(size=(n, d))


FIELDS = (
    Field("spectrum, 5,000 places, lines of 14 over 12 places", even(5000), 3.0, 4, -14.0, 3 / 5000),
    Field("spectrum, 5,000 places, lines of 5 over 12 places", even(5000), 3.0, 4, -5.0, 3 / 5000),
    Field("spectrum, 5,000 places, lines of 5 over 100 places", even(5000), 3.0, 4, -5.0, 25 / 5000),
    Field("series, 1,000 times, dips of 5 over 16 times", even(1000), 2.0, 3, -5.0, 4 / 1000),
    Field("map, 3,000 places, spots of 30 with 20 in each", anywhere(3000, 2), 5.0, 3, 30.0, 0.023),
    Field("map, 3,000 places, no spots", anywhere(3000, 2), 5.0, 1, 0.0, 0.023),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4)
    trials = parser.parse_args().trials
    rows = []
    for field in FIELDS:
        scores = np.array([[score(field, options, seed) for seed in range(trials)] for options in OPTIONS.values()])
        for name, of_option in zip(OPTIONS, scores, strict=True):
            rows.append({"field": field.name, "options": name, **summary(of_option)})
            print(rows[-1], flush=True)
        about = {**circumstances(), "trials": trials}
        write_json("features", {**about, "rows": rows})
        write_markdown("features", "Narrow features", _text(rows, trials), about)


def score(field: Field, options: dict, seed: int) -> tuple[float, float, float]:
    """RMSE and coverage of 95 % intervals at the features, and RMSE everywhere."""
    rng = np.random.default_rng(seed)
    x, function, inside = field.draw(rng)
    reg = npax.NeuralProcessRegressor(**options).fit(x, function + rng.normal(size=len(x)))
    mean, std = reg.predict(x, return_std=True, include_noise=False)
    off = np.abs(mean - function)
    return np.sqrt(np.mean(off[inside] ** 2)), np.mean(off[inside] < 1.96 * std[inside]), np.sqrt(np.mean(off**2))


def summary(scores: np.ndarray) -> dict[str, float]:
    """Means of `[trials 3]`, and the standard error of the first."""
    rmse, coverage, everywhere = scores.mean(axis=0).tolist()
    error = scores[:, 0].std(ddof=1).item() / len(scores) ** 0.5
    return {"rmse": rmse, "rmse_error": error, "coverage": coverage, "everywhere": everywhere}


def _text(rows, trials) -> str:
    cells = [
        [
            *(row["field"], f"`{row['options']}`" if "=" in row["options"] else row["options"]),
            *(f"{row['rmse']:.2f} ± {row['rmse_error']:.2f}", f"{row['coverage']:.0%}", f"{row['everywhere']:.3f}"),
        ]
        for row in rows
    ]
    return (
        f"Without training; {trials} draws of each. Noise has the standard deviation 1, which is the RMSE of single "
        "observations, and the unit of heights. Coverage: of 95 % intervals of the noiseless field.\n\n"
        + table(["field", "options", "RMSE at the features", "coverage there", "RMSE everywhere"], cells)
    )


if __name__ == "__main__":
    main()
