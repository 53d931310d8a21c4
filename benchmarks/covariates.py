"""Stations whose values depend on more than where they are: the shipped model, beside universal kriging.

    python benchmarks/covariates.py --data FOLDER

Half of the stations, drawn at random, at most 300, predict the others. FOLDER holds `meuse.csv` and `na_rainfall.csv`
(of the R packages sp and fields), `era5_uk_2019_03.npz` and `era5_europe_2022_07.npz` (`npax.data` says what is in
them). Universal kriging is a Gaussian process, Matern 3/2 of one length and white noise, whose mean is linear in the
covariates: lengths and noise by restricted maximum likelihood, slopes by generalised least squares, with their doubt.
The shipped model sees all observations at once (`strategy="exact"`). Writes `results/covariates.md` and `.json`.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.linear_model import LinearRegression
from stations import Stations, run

import npax
from npax.data import fields
from npax.demo.baselines import chords

ERA5_STATIONS = {"uk": 200, "europe": 600}
STARTS = ((0.0, -2.0), (1.5, -1.0), (1.5, -4.0))
"""Logarithms of inverse length, in standard deviations of the places, and of the noise's variance."""


def zinc(folder: Path, repeats: int) -> Iterator[Stations]:
    """Logarithm of zinc at 155 sites of the Meuse's flood plain: root of the distance to the river, elevation"""
    names = ("x", "y", "dist", "elev", "zinc")
    soil = np.genfromtxt(folder / "meuse.csv", delimiter=",", names=True, usecols=names)
    X = np.stack([soil["x"], soil["y"], np.sqrt(soil["dist"]), soil["elev"]], axis=1)
    for _ in range(repeats):
        yield Stations(X, np.log(soil["zinc"]), "planar")


def rainfall(folder: Path, repeats: int) -> Iterator[Stations]:
    """Summer rainfall at 1,720 stations of North America: elevation"""
    data = fields.rainfall(folder)
    for _ in range(repeats):
        yield Stations(np.stack([data.lon, data.lat, data.elevation], axis=1), data.rain, "latlon")


def british_isles(folder: Path, repeats: int) -> Iterator[Stations]:
    """Temperature (ERA5) at 200 places of the British Isles, hours spread over a month: elevation, land or not"""
    yield from _temperatures(fields.era5_uk(folder), ERA5_STATIONS["uk"], repeats)


def europe(folder: Path, repeats: int) -> Iterator[Stations]:
    """Temperature (ERA5) at 600 places of Europe, every six hours of five days: elevation, land or not"""
    yield from _temperatures(fields.era5_europe(folder), ERA5_STATIONS["europe"], repeats)


def _temperatures(data, number, repeats):
    rng, height = np.random.default_rng(0), data.elevation.to_numpy().ravel()
    lon, lat = (a.ravel() for a in np.meshgrid(data.lon, data.lat))
    X = np.stack([lon, lat, np.maximum(height, 0), height > 0], axis=1)
    for hour in np.linspace(0, data.sizes["time"] - 1, repeats).astype(int):
        some = rng.permutation(len(X))[:number]
        yield Stations(X[some], data.t2m[int(hour)].to_numpy().ravel()[some].astype(float), "latlon")


DATA = (zinc, rainfall, british_isles, europe)


def places_alone(seen: Stations, wanted: np.ndarray):
    reg = npax.NeuralProcessRegressor(coords=seen.coords, strategy="exact").fit(seen.places[:, :2], seen.y)
    return reg.predict(wanted[:, :2], return_std=True)


def with_covariates(seen: Stations, wanted: np.ndarray):
    options = {"coords": seen.coords, "strategy": "exact", "covariates": range(2, seen.places.shape[1])}
    return npax.NeuralProcessRegressor(**options).fit(seen.places, seen.y).predict(wanted, return_std=True)


def one_a_coordinate(seen: Stations, wanted: np.ndarray):
    """The first covariate as a third coordinate."""
    reg = npax.NeuralProcessRegressor(coords=seen.coords, strategy="exact").fit(seen.places[:, :3], seen.y)
    return reg.predict(wanted[:, :3], return_std=True)


def least_squares_first(seen: Stations, wanted: np.ndarray):
    """Ordinary least squares, and the shipped model on what is left."""
    line = LinearRegression().fit(seen.places[:, 2:], seen.y)
    left = seen._replace(y=seen.y - line.predict(seen.places[:, 2:]))
    mean, std = places_alone(left, wanted)
    return mean + line.predict(wanted[:, 2:]), std


def universal_kriging(seen: Stations, wanted: np.ndarray):
    """On the sphere, where places are in degrees: on chords."""
    of = chords if seen.coords == "latlon" else np.asarray
    x, xt = of(seen.places[:, :2]), of(wanted[:, :2])
    width, (middle, spread) = x.std(axis=0).max(), (f(seen.places[:, 2:], axis=0) for f in (np.mean, np.std))
    z, zt = (np.column_stack([np.ones(len(a)), (a[:, 2:] - middle) / spread]) for a in (seen.places, wanted))
    apart, y, n = cdist(x, x) / width, seen.y, len(x) - z.shape[1]

    def covariance(distance, speed):
        r = np.sqrt(3) * np.exp(speed) * distance
        return (1 + r) * np.exp(-r)

    def solved(guess):
        speed, noise = guess
        k = covariance(apart, speed) + (np.exp(noise) + 1e-8) * np.eye(len(x))
        *kz, ky = np.linalg.solve(k, np.column_stack([z, y])).T
        kz = np.stack(kz, axis=1)
        information = z.T @ kz
        slopes = np.linalg.solve(information, kz.T @ y)
        rest = ky - kz @ slopes
        return k, kz, information, slopes, rest, (y - z @ slopes) @ rest / n

    def loss(guess):
        k, _, information, _, _, variance = solved(guess)
        return (n * np.log(variance) + np.linalg.slogdet(k)[1] + np.linalg.slogdet(information)[1]) / 2

    ends = [minimize(loss, start, method="Nelder-Mead", options={"maxiter": 150}) for start in STARTS]
    speed, noise = min(ends, key=lambda end: end.fun).x
    k, kz, information, slopes, rest, variance = solved((speed, noise))
    across = covariance(cdist(xt, x) / width, speed)
    beyond = zt - across @ kz
    of_field = 1 + np.exp(noise) - np.einsum("ti,it->t", across, np.linalg.solve(k, across.T))
    of_slopes = np.einsum("tp,pt->t", beyond, np.linalg.solve(information, beyond.T))
    return zt @ slopes + across @ rest, np.sqrt(variance * (of_field + of_slopes))


METHODS = {
    "npax, places alone": places_alone,
    "npax, covariates": with_covariates,
    "npax, the first covariate a coordinate": one_a_coordinate,
    "least squares, npax on what is left": least_squares_first,
    "universal kriging, fitted": universal_kriging,
}


if __name__ == "__main__":
    run(__doc__, DATA, METHODS, "covariates", "Stations with covariates", "universal kriging, fitted")
