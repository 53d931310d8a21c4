"""Coordinates along which a function varies unlike: what it is worth to find out before the network looks.

    python benchmarks/anisotropy.py

Matern 3/2 fields of variance 1, observed with noise at uniform places of [-2, 2]^d: with one length scale for all
coordinates, one of its own for each (log-uniform from 0.3 to 3), or the same and one coordinate without effect; on a
part of the globe (30 by 20 degrees around 50 N) and all around it, with one length in all directions or a third of it
to the north; and around it during a year. CRPS of the noiseless field at 500 other places above that of the Gaussian
process that knows kernel and noise: with the units that `npax.inference.anisotropy` finds, as the estimator does, and
with each coordinate scaled by itself. Then ocean temperatures with longitude, latitude and day, and without the day
(the split of `npax demo`). Writes `results/anisotropy.md` and `.json`.
"""

import argparse
import dataclasses
import warnings

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32

from npax.demo.argo import split
from npax.inference import Exact, LatLon, Planar, Tiled
from npax.metrics import score_report
from npax.serialise import load

TARGETS = 500
PLANES = [(d, n, noise) for d in (2, 3) for n in (40, 200, 2000) for noise in (0.1, 1.0)]
_WHERE = {"part": "a part of the globe", "whole": "the globe"}
KINDS = ("alike", "unlike", "one without effect")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", type=int, default=6, help="of each kind")
    options = parser.parse_args()
    model = load("gp-universal")
    rows = []
    for d, n, noise in PLANES:
        for kind in KINDS:
            found = [_plane(model, seed, d, n, noise, kind) for seed in range(options.fields)]
            rows.append({"places": f"{n:,} in {d}-D", "noise": noise, "lengths": kind, **_row(found)})
            print(rows[-1], flush=True)
    for n, where, north in [(n, w, north) for w in ("part", "whole") for n in (40, 200, 2000) for north in (1, 3)]:
        found = [_sphere(model, seed, n, where == "part", north) for seed in range(options.fields)]
        lengths = "alike" if north == 1 else "a third to the north"
        rows.append({"places": f"{n:,} on {_WHERE[where]}", "noise": 0.3, "lengths": lengths, **_row(found)})
        print(rows[-1], flush=True)
    for n, space, days in ((200, 0.6, 120.0), (4000, 0.3, 60.0)):
        found = [_year(model, seed, n, space, days) for seed in range(max(options.fields // 2, 1))]
        rows.append({"places": f"{n:,} on the globe in a year", "noise": 0.3, "lengths": "unlike", **_row(found)})
        print(rows[-1], flush=True)
    real = _argo(model)
    about = circumstances()
    write_json("anisotropy", {"about": about, "rows": rows, "argo": real})
    write_markdown("anisotropy", "Functions that vary unlike along coordinates", _text(rows, real), about)


def _plane(model, seed, d, n, noise, kind):
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.uniform(np.log(0.3), np.log(3.0), d if kind != "alike" else 1)) * np.ones(d)
    if kind == "one without effect":
        lengths[rng.integers(d)] = np.inf
    x = rng.uniform(-2, 2, (n + TARGETS, d))
    return _scored(model, rng, x, x / lengths, noise, Planar())


def _sphere(model, seed, n, part, north):
    """Length scales to the east, beside the extent, as on planes; on what is added for the north depends nothing else:
    chords and differences of latitude."""
    rng = np.random.default_rng(seed)
    x = _around(rng, n + TARGETS)
    if part:
        x = np.column_stack([rng.uniform(-15, 15, len(x)), rng.uniform(40, 60, len(x))])
    length = np.exp(rng.uniform(np.log(0.3), np.log(3.0))) * (np.radians(5) if part else 0.5)
    latitude = np.radians(x[:, 1:]) * np.sqrt(north**2 - 1)
    return _scored(model, rng, x, np.column_stack([LatLon().positions(x), latitude]) / length, 0.3, LatLon())


def _around(rng, m):
    """Places spread evenly over the globe."""
    return np.column_stack([rng.uniform(-180, 180, m), np.degrees(np.arcsin(rng.uniform(-1, 1, m)))])


def _year(model, seed, n, space, days):
    """Length scales in radii of the globe and in days."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([_around(rng, n + TARGETS), rng.uniform(0, 365, n + TARGETS)])
    return _scored(model, rng, x, LatLon().positions(x) / [space, space, space, days], 0.3, LatLon())


def _scored(model, rng, x, seen, noise, system):
    """CRPS of a field with unit length scales at places `seen [n + TARGETS p]`: the best, then pairs of `Exact` (NaN on
    the globe in time) and `Tiled`, with units found and each coordinate scaled by itself."""
    n = len(x) - TARGETS
    k = matern32(seen)
    field = draw(rng, k)
    y, truth = field[:n] + noise * rng.normal(size=n), field[n:]
    scores = [score_report(truth, *best_answer(k, y, noise))["crps"]]
    for way in (system, _each_by_itself(system, x[:n])):
        for kind in (Exact, Tiled):
            if kind is Exact and isinstance(system, LatLon) and x.shape[1] > 2:
                scores.append(np.nan)
                continue
            found = kind(model, x[:n], y[:, None], way)(x[n:])
            scores.append(score_report(truth, found.mean[:, 0], found.std(include_noise=False)[:, 0])["crps"])
    return scores


def _each_by_itself(system, x):
    return dataclasses.replace(system, units=tuple(system.space(system.positions(x)).scale))


def _row(found):
    best, *others = np.mean(found, axis=0)
    above = [other / best - 1 for other in others]
    return {"best": best, "above": [None if np.isnan(a) else a for a in above]}


def _argo(model):
    places, y, held_out = split()
    y = y[:, None]
    by_itself = _each_by_itself(LatLon(), places[~held_out])
    rows = []
    for name, columns, system in (
        ("longitude, latitude", 2, LatLon()),
        ("longitude, latitude, one scale", 2, _each_by_itself(LatLon(), places[~held_out][:, :2])),
        ("and day", 3, LatLon()),
        ("and day, scaled by itself", 3, by_itself),
    ):
        x = places[:, :columns]
        found = Tiled(model, x[~held_out], y[~held_out], system, size=64)(x[held_out])
        rows.append({"coordinates": name, **score_report(y[held_out], found.mean, found.std())})
        print(rows[-1], flush=True)
    return rows


def _text(rows, real):
    def shown(above):
        exact, tiled = ("" if a is None else f"{100 * a:.1f} %" for a in above)
        return exact, tiled

    headings = ["observations", "noise", "length scales", "best CRPS"]
    headings += ["units found: at once", "in tiles", "each by itself: at once", "in tiles"]
    fields = table(
        headings,
        [
            [
                r["places"],
                f"{r['noise']:g}",
                r["lengths"],
                f"{r['best']:.3f}",
                *shown(r["above"][:2]),
                *shown(r["above"][2:]),
            ]
            for r in rows
        ],
    )
    scores = [[r["coordinates"], *(f"{r[s]:.3f}" for s in ("rmse", "crps", "coverage"))] for r in real]
    scores = table(["coordinates", "RMSE", "CRPS", "95 % coverage"], scores)
    return f"CRPS of the noiseless field above the best.\n\n{fields}\n\n## Argo\n\n{scores}\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
