"""Stations that have levels of their own, such as wells: all at once, or the levels and what changes by themselves.

    python benchmarks/levels.py

40 stations in the plane, a value in each of 60 months, a quarter of them missing; 12 stations are silent for nine
months besides, and 8 were never seen. The field is a level that is the same at all times plus what changes, both with
an exponential covariance of a quarter of the side, the second of 200 days as well; noise is a tenth of what changes.
Scores are of the noiseless field where values are missing, and at the new stations. "Apart" is two fits: of the means
of the stations (for new ones only), and of what is left of the values without these. "Known" is the process itself.
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
LEVELS = (0.0, 1.0, 5.0)
"""Standard deviations, in those of what changes."""
PLACE, WHEN = ["x", "y"], "day"


class Draw(NamedTuple):
    """What is seen, what is missing of stations that are seen, and new stations: each with the true `field`."""

    seen: pd.DataFrame
    gaps: pd.DataFrame
    new: pd.DataFrame


def draw(level: float, seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    places, days = rng.uniform(size=(STATIONS, 2)), 365.25 / 12 * np.arange(MONTHS)
    in_space = root(np.exp(-cdist(places, places) / REACH))
    in_time = root(np.exp(-np.abs(days[:, None] - days) / DAYS))
    field = level * (in_space @ rng.normal(size=STATIONS))[:, None]
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


def together(seen: pd.DataFrame, wanted: pd.DataFrame, level: float) -> tuple[np.ndarray, np.ndarray]:
    return predicted(seen[[*PLACE, WHEN]], seen.value, wanted[[*PLACE, WHEN]])


def apart(seen: pd.DataFrame, wanted: pd.DataFrame, level: float) -> tuple[np.ndarray, np.ndarray]:
    by_station = seen.groupby("station")
    means = by_station[[*PLACE, "value"]].mean()
    unsure = by_station.value.std() / np.sqrt(by_station.size())
    known = wanted.station.isin(means.index)
    at, std = (np.array(wanted.station.map(of_station)) for of_station in (means.value, unsure))
    if not known.all():
        at[~known], std[~known] = predicted(means[PLACE], means.value, wanted.loc[~known, PLACE], coords="isotropic")
    rest = predicted(seen[[*PLACE, WHEN]], seen.value - seen.station.map(means.value), wanted[[*PLACE, WHEN]])
    return at + rest[0], np.hypot(std, rest[1])


def known(seen: pd.DataFrame, wanted: pd.DataFrame, level: float) -> tuple[np.ndarray, np.ndarray]:
    def covariance(a, b):
        in_time = np.exp(-np.abs(a[WHEN].to_numpy()[:, None] - b[WHEN].to_numpy()) / DAYS)
        return np.exp(-cdist(a[PLACE], b[PLACE]) / REACH) * (level**2 + in_time)

    between = covariance(seen, wanted)
    weights = np.linalg.solve(covariance(seen, seen) + NOISE**2 * np.eye(len(seen)), between)
    return weights.T @ seen.value.to_numpy(), np.sqrt(np.maximum(level**2 + 1 - np.sum(weights * between, axis=0), 0))


def predicted(X, y, Xt, **options) -> tuple[np.ndarray, np.ndarray]:
    reg = npax.NeuralProcessRegressor(**options).fit(X.to_numpy(), y.to_numpy())
    return reg.predict(Xt.to_numpy(), return_std=True, include_noise=False)


WAYS = {"together": together, "apart": apart, "known": known}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4)
    trials = parser.parse_args().trials
    rows = []
    for level in LEVELS:
        for name, way in WAYS.items():
            scores = np.array([score(way, level, seed) for seed in range(trials)])
            rows.append({"level": level, "way": name, **summary(scores)})
            print(rows[-1], flush=True)
        about = {**circumstances(), "trials": trials}
        write_json("levels", {**about, "rows": rows})
        write_markdown("levels", "Stations with levels of their own", _text(rows, trials), about)


def score(way, level: float, seed: int) -> list[list[float]]:
    """RMSE, CRPS and coverage of 95 % intervals in the gaps, and at new stations."""
    seen, *wanted = draw(level, seed)
    found = [(*way(seen, part, level), part.field.to_numpy()) for part in wanted]
    return [[np.sqrt(np.mean((m - f) ** 2)), crps(f, m, s), np.mean(np.abs(m - f) < 1.96 * s)] for m, s, f in found]


def summary(scores: np.ndarray) -> dict:
    """Of `scores [trials 2 3]`."""
    rmse, crpses, cover = scores.mean(axis=0).T
    spread = scores[..., 1].std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.zeros(2)
    each = zip(("gaps", "new"), rmse, crpses, spread, cover, strict=True)
    return {name: dict(zip(("rmse", "crps", "crps_error", "cover"), of, strict=True)) for name, *of in each}


def _text(rows, trials):
    header = [
        "levels",
        "way",
        *(f"{where}: {what}" for where in ("gaps", "new") for what in ("RMSE", "CRPS", "coverage")),
    ]
    lines = [
        [f"{row['level']:g}", row["way"], *(text for where in ("gaps", "new") for text in _scores(row[where]))]
        for row in rows
    ]
    return (
        f"Without training; {trials} draws. What changes has the standard deviation 1, the unit of all; coverage of 95 "
        "% intervals of the noiseless field; ± over draws.\n\n" + table(header, lines)
    )


def _scores(of):
    return f"{of['rmse']:.3f}", f"{of['crps']:.3f} ± {of['crps_error']:.3f}", f"{of['cover']:.0%}"


if __name__ == "__main__":
    main()
