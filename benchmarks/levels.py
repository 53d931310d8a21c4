"""Stations that have levels of their own, such as wells, or a season in common: all at once, or these by themselves.

    python benchmarks/levels.py

40 stations in the plane, a value in each of 60 months, a quarter of them missing; 12 stations are silent for nine
months besides, and 8 were never seen. The field is what changes, with exponential covariances of a quarter of the side
and of 200 days, plus a level of each station, with an exponential covariance of a quarter of the side as well, or plus
a season, a sinusoid of a year that is the same at all stations; noise is a tenth of what changes. Scores are of the
noiseless field where values are missing, and at the new stations. "Default" is the library as it comes, which may take
levels off (`NeuralProcessRegressor(levels=True)`), "together" is without that. "Apart" is two fits by hand: of the
means of the stations (for new ones only) or months, and of what is left of the values. "Known" is the process itself.
Writes `results/levels.md` and `.json`.
"""

import argparse
from typing import NamedTuple

import numpy as np
import pandas as pd
from _report import circumstances, table, write_json, write_markdown
from scipy.spatial.distance import cdist

import npax
from npax.metrics import crps

STATIONS, MONTHS, NEW, SILENT, NOISE = 40, 60, 8, 12, 0.1
REACH, DAYS = 0.25, 200.0
YEAR = 365.25


class World(NamedTuple):
    """Standard deviations of levels and season, in those of what changes."""

    level: float = 0.0
    season: float = 0.0

    def __str__(self) -> str:
        return f"season {self.season:g}" if self.season else f"levels {self.level:g}"


WORLDS = World(), World(level=1.0), World(level=5.0), World(season=1.0), World(season=5.0)
PLACE, WHEN = ["x", "y"], "day"


class Draw(NamedTuple):
    """What is seen, what is missing of stations that are seen, and new stations: each with the true `field`."""

    seen: pd.DataFrame
    gaps: pd.DataFrame
    new: pd.DataFrame


def draw(world: World, seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    places, days = rng.uniform(size=(STATIONS, 2)), YEAR / 12 * np.arange(MONTHS)
    in_space = root(np.exp(-cdist(places, places) / REACH))
    in_time = root(np.exp(-np.abs(days[:, None] - days) / DAYS))
    field = world.level * (in_space @ rng.normal(size=STATIONS))[:, None]
    field = field + world.season * rng.normal(size=2) @ [f(2 * np.pi * days / YEAR) for f in (np.cos, np.sin)]
    field = field + in_space @ rng.normal(size=(STATIONS, MONTHS)) @ in_time.T
    station, month = (a.ravel() for a in np.indices(field.shape))
    rows = {"station": station, "x": places[station, 0], "y": places[station, 1], WHEN: days[month]}
    rows |= {"field": field.ravel(), "value": field.ravel() + NOISE * rng.normal(size=field.size)}
    begin = rng.integers(5, 45, STATIONS)[station]
    silent = (station >= NEW) & (station < NEW + SILENT) & (month >= begin) & (month < begin + 9)
    missing, new = silent | (rng.random(field.size) < 0.25), station < NEW
    every = pd.DataFrame(rows)
    return Draw(every[~missing & ~new], every[missing & ~new], every[new])


def root(covariance: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(covariance + 1e-9 * np.eye(len(covariance)))


def default(seen: pd.DataFrame, wanted: pd.DataFrame, world: World) -> tuple[np.ndarray, np.ndarray]:
    return predicted(seen[[*PLACE, WHEN]], seen.value, wanted[[*PLACE, WHEN]])


def together(seen: pd.DataFrame, wanted: pd.DataFrame, world: World) -> tuple[np.ndarray, np.ndarray]:
    return predicted(seen[[*PLACE, WHEN]], seen.value, wanted[[*PLACE, WHEN]], levels=False)


def apart(seen: pd.DataFrame, wanted: pd.DataFrame, world: World) -> tuple[np.ndarray, np.ndarray]:
    if world.season:
        means = seen.groupby(WHEN).value.mean()
        left = seen.value - seen[WHEN].map(means)
        mean, std = predicted(seen[[*PLACE, WHEN]], left, wanted[[*PLACE, WHEN]], levels=False)
        return wanted[WHEN].map(means).to_numpy() + mean, std
    by_station = seen.groupby("station")
    means = by_station[[*PLACE, "value"]].mean()
    unsure = by_station.value.std() / np.sqrt(by_station.size())
    known = wanted.station.isin(means.index)
    at, std = (np.array(wanted.station.map(of_station)) for of_station in (means.value, unsure))
    if not known.all():
        at[~known], std[~known] = predicted(means[PLACE], means.value, wanted.loc[~known, PLACE], coords="isotropic")
    left = seen.value - seen.station.map(means.value)
    rest = predicted(seen[[*PLACE, WHEN]], left, wanted[[*PLACE, WHEN]], levels=False)
    return at + rest[0], np.hypot(std, rest[1])


def known(seen: pd.DataFrame, wanted: pd.DataFrame, world: World) -> tuple[np.ndarray, np.ndarray]:
    def covariance(a, b):
        apart = a[WHEN].to_numpy()[:, None] - b[WHEN].to_numpy()
        of_all = world.season**2 * np.cos(2 * np.pi * apart / YEAR)
        return np.exp(-cdist(a[PLACE], b[PLACE]) / REACH) * (world.level**2 + np.exp(-np.abs(apart) / DAYS)) + of_all

    between, variance = covariance(seen, wanted), world.level**2 + world.season**2 + 1
    weights = np.linalg.solve(covariance(seen, seen) + NOISE**2 * np.eye(len(seen)), between)
    return weights.T @ seen.value.to_numpy(), np.sqrt(np.maximum(variance - np.sum(weights * between, axis=0), 0))


def predicted(X, y, Xt, **options) -> tuple[np.ndarray, np.ndarray]:
    reg = npax.NeuralProcessRegressor(**options).fit(X.to_numpy(), y.to_numpy())
    return reg.predict(Xt.to_numpy(), return_std=True, include_noise=False)


WAYS = {"default": default, "together": together, "apart": apart, "known": known}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4)
    trials = parser.parse_args().trials
    rows = []
    for world in WORLDS:
        for name, way in WAYS.items():
            scores = np.array([score(way, world, seed) for seed in range(trials)])
            rows.append({"world": str(world), "way": name, **summary(scores)})
            print(rows[-1], flush=True)
        about = {**circumstances(), "trials": trials}
        write_json("levels", {**about, "rows": rows})
        write_markdown("levels", "Stations with levels of their own, or a season in common", _text(rows, trials), about)


def score(way, world: World, seed: int) -> list[list[float]]:
    """RMSE, CRPS and coverage of 95 % intervals in the gaps, and at new stations."""
    seen, *wanted = draw(world, seed)
    found = [(*way(seen, part, world), part.field.to_numpy()) for part in wanted]
    return [[np.sqrt(np.mean((m - f) ** 2)), crps(f, m, s), np.mean(np.abs(m - f) < 1.96 * s)] for m, s, f in found]


def summary(scores: np.ndarray) -> dict:
    """Of `scores [trials 2 3]`."""
    rmse, crpses, cover = scores.mean(axis=0).T
    spread = scores[..., 1].std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.zeros(2)
    each = zip(("gaps", "new"), rmse, crpses, spread, cover, strict=True)
    return {name: dict(zip(("rmse", "crps", "crps_error", "cover"), of, strict=True)) for name, *of in each}


def _text(rows, trials):
    header = [
        "world",
        "way",
        *(f"{where}: {what}" for where in ("gaps", "new") for what in ("RMSE", "CRPS", "coverage")),
    ]
    lines = [
        [row["world"], row["way"], *(text for where in ("gaps", "new") for text in _scores(row[where]))] for row in rows
    ]
    return (
        f"Without training; {trials} draws. What changes has the standard deviation 1, the unit of all; coverage of 95 "
        "% intervals of the noiseless field; ± over draws.\n\n" + table(header, lines)
    )


def _scores(of):
    return f"{of['rmse']:.3f}", f"{of['crps']:.3f} ± {of['crps_error']:.3f}", f"{of['cover']:.0%}"


if __name__ == "__main__":
    main()
