"""Real stations: the shipped model beside a Gaussian process fitted to each data set.

    python benchmarks/stations.py --data FOLDER

Half of the stations, drawn at random, at most 300, predict the others. FOLDER holds `meuse.csv` and `na_rainfall.csv`
(of the R packages sp and fields), `ozone_midwest.npz` (fields) and `era5_uk_2019_03.npz` (`npax.data` says what is in
them). The Gaussian process is scikit-learn's: a constant times Matern 3/2 of one length, or of one for each coordinate,
plus white noise, by maximum likelihood with restarts. The shipped model sees all observations at once
(`strategy="exact"`, as the default does of so few unless much of it is noise). Writes `results/stations.md` and
`.json`.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import npax
from npax.data import fields
from npax.demo.baselines import chords
from npax.metrics import score_report

SCORES = ("rmse", "crps", "nll", "coverage", "seconds")
ERA5_STATIONS = 200
MOST = 300
"""Stations that are seen."""


class Stations(NamedTuple):
    """Places `[n 2]`, in degrees where `coords` is "latlon", with covariates in further columns if there are any, and
    what was measured there, `[n]`."""

    places: np.ndarray
    y: np.ndarray
    coords: str


def meuse(folder: Path, repeats: int) -> Iterator[Stations]:
    """Logarithm of zinc in the soil at 155 sites of the Meuse's flood plain"""
    soil = np.genfromtxt(folder / "meuse.csv", delimiter=",", names=True, usecols=("x", "y", "zinc"))
    for _ in range(repeats):
        yield Stations(np.stack([soil["x"], soil["y"]], axis=1), np.log(soil["zinc"]), "planar")


def ozone(folder: Path, repeats: int) -> Iterator[Stations]:
    """Ozone at up to 153 stations of the Midwest, on days spread over the summer of 1987"""
    data = fields.ozone(folder)
    for day in np.linspace(0, len(data.date) - 1, repeats).astype(int):
        seen = np.isfinite(data.ozone[day])
        yield Stations(np.stack([data.lon, data.lat], axis=1)[seen], data.ozone[day][seen], "latlon")


def rainfall(folder: Path, repeats: int) -> Iterator[Stations]:
    """Summer rainfall at 1,720 stations of North America"""
    data = fields.rainfall(folder)
    for _ in range(repeats):
        yield Stations(np.stack([data.lon, data.lat], axis=1), data.rain, "latlon")


def temperature(folder: Path, repeats: int) -> Iterator[Stations]:
    """Temperature at 2 m (ERA5) at 200 places of the British Isles, at hours spread over a month"""
    data, rng = fields.era5_uk(folder), np.random.default_rng(0)
    places = np.stack(np.meshgrid(data.lon, data.lat), axis=-1).reshape(-1, 2)
    for hour in np.linspace(0, data.sizes["time"] - 1, repeats).astype(int):
        some = rng.permutation(len(places))[:ERA5_STATIONS]
        yield Stations(places[some], data.t2m[int(hour)].to_numpy().ravel()[some].astype(float), "latlon")


def strip(folder: Path, repeats: int) -> Iterator[Stations]:
    """For comparison: draws of a Gaussian process (Matern 1/2, a little noise) at 200 places of a strip, 4 by 1"""
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        places = rng.uniform(size=(200, 2)) * [4.0, 1.0]
        covariance = np.exp(-cdist(places, places) / 0.5) + 0.02 * np.eye(len(places))
        yield Stations(places, np.linalg.cholesky(covariance) @ rng.normal(size=len(places)), "planar")


DATA = (meuse, ozone, rainfall, temperature, strip)


def zero_shot(seen: Stations, wanted: np.ndarray):
    reg = npax.NeuralProcessRegressor(coords=seen.coords, strategy="exact").fit(seen.places, seen.y)
    return reg.predict(wanted, return_std=True)


def scaled_alike(seen: Stations, wanted: np.ndarray):
    """On a plane: with one scale for both coordinates."""
    if seen.coords != "planar":
        return None
    reg = npax.NeuralProcessRegressor(coords="isotropic", strategy="exact").fit(seen.places, seen.y)
    return reg.predict(wanted, return_std=True)


def in_one_view(seen: Stations, wanted: np.ndarray):
    reg = npax.NeuralProcessRegressor(coords=seen.coords, strategy="exact", views=None).fit(seen.places, seen.y)
    return reg.predict(wanted, return_std=True)


def gaussian_process(seen: Stations, wanted: np.ndarray, *, anisotropic: bool = False):
    """On the sphere, where places are in degrees: on chords."""
    of = chords if seen.coords == "latlon" else np.asarray
    x, xt = of(seen.places), of(wanted)
    centre, width = x.mean(axis=0), x.std(axis=0).max()
    length = np.ones(x.shape[1]) if anisotropic else 1.0
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(length, (1e-2, 1e2), nu=1.5) + WhiteKernel(0.1, (1e-6, 1e1))
    gp = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp.fit((x - centre) / width, seen.y)
    return gp.predict((xt - centre) / width, return_std=True)


def anisotropic_gaussian_process(seen: Stations, wanted: np.ndarray):
    return gaussian_process(seen, wanted, anisotropic=True)


METHODS = {
    "npax, zero-shot": zero_shot,
    "npax, coords=isotropic": scaled_alike,
    "npax, in one view": in_one_view,
    "GP, Matern 3/2, fitted": gaussian_process,
    "GP, a length for each coordinate": anisotropic_gaussian_process,
}


def score(data, methods, folder, repeats) -> tuple[dict[str, np.ndarray], float]:
    """Of each method the scores of each repetition, `[repeats scores]`; and how many times as many stations are hidden
    as seen, where all repetitions are of the same ones, else 0."""
    found, rng, known_before, ratio = {name: [] for name in methods}, np.random.default_rng(1), None, 0.0
    for stations in data(folder, repeats):
        order = rng.permutation(len(stations.y))
        seen, hidden = np.split(order, [min(len(order) // 2, MOST)])
        known = stations._replace(places=stations.places[seen], y=stations.y[seen])
        ratio = len(hidden) / len(seen) if np.array_equal(known_before, stations.y) else 0.0
        known_before = stations.y
        for name, method in methods.items():
            started = time.monotonic()
            moments = method(known, stations.places[hidden])
            if moments is None:
                continue
            report = {**score_report(stations.y[hidden], *moments), "seconds": time.monotonic() - started}
            found[name].append([report[column] for column in SCORES])
    return {name: np.array(rows) for name, rows in found.items() if rows}, ratio


def report(found, repeats, name, title, reference) -> None:
    """Means over the repetitions; of the CRPS also how much less it is than that of the method `reference`, paired,
    with its standard error. Halves of the same stations are not independent: there it is that of Nadeau and Bengio
    (2003), Machine Learning 52, whose variance of a mean is (1 / repeats + hidden / seen) times that of a
    repetition."""
    parts, content = [], {}
    for data, (scores, ratio) in found.items():
        beside = scores[reference][:, SCORES.index("crps")]
        rows = []
        for method, each in scores.items():
            gain = 100 * (1 - each[:, SCORES.index("crps")] / beside)
            mean = dict(zip(SCORES, each.mean(axis=0), strict=True))
            mean["seconds"] = float(np.median(each[:, -1]))
            mean |= {"gain": float(gain.mean()), "gain_error": float(gain.std(ddof=1) * np.sqrt(1 / repeats + ratio))}
            content.setdefault(data.__name__, {})[method] = mean
            rows.append([method, *(f"{mean[column]:.3g}" for column in SCORES)])
            rows[-1].append(f"{mean['gain']:.1f} ± {mean['gain_error']:.1f}")
        parts.append(f"## {data.__doc__}\n\n{table(['method', *SCORES, 'CRPS less by, %'], rows)}")
    about = circumstances()
    head = (
        f"Half of the stations, at most {MOST}, predict the others, {repeats} times; seconds: the median. ±: standard "
        "error, of halves of the same stations (zinc, rainfall) with the correction of Nadeau and Bengio (2003)."
    )
    body = "\n\n".join([head, *parts])
    print(body)
    print(write_markdown(name, title, body, about))
    write_json(name, {**about, "repeats": repeats, "rows": content})


def run(description, data, methods, name, title, reference) -> None:
    """The command of a comparison on stations."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the files")
    parser.add_argument("--repeats", type=int, default=20, help="random halves, or days or hours")
    options = parser.parse_args()
    found = {one: score(one, methods, options.data, options.repeats) for one in data}
    report(found, options.repeats, name, title, reference)


if __name__ == "__main__":
    run(__doc__, DATA, METHODS, "stations", "Real stations", "GP, Matern 3/2, fitted")
