"""Rates of counts: the shipped model beside Gaussian processes fitted to each data set.

    python benchmarks/counts.py --data FOLDER

FOLDER holds `ozone_midwest.npz` (`npax.data` says what is in it): on how many days ozone was above 75 ppb at half of
the stations predicts on how many it was at the others; of all days, and of two weeks. The other counts are drawn: their
levels are Matern 3/2 fields in the plane, of length scales between a tenth and two fifths of the side, with or without
noise, and each is predicted at 200 places; or series of weeks, evenly in time, predicted at 200 times between. There
the best is told as well: the process that knows its covariance, with its best normal posterior.

The Gaussian processes: of levels, by Laplace's approximation (`_laplace.py`); scikit-learn's of logarithms (log odds)
of observed rates, half an event added to each, with their variances. Writes `results/counts.md` and `.json`.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _laplace import Laplace
from _report import circumstances, table, write_json, write_markdown
from _truth import draw, matern32
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import npax
from npax.counts import AbstractCounts, Binomial, Poisson, score_report
from npax.data import fields
from npax.demo.baselines import chords
from npax.inference import Prediction, linearised

SCORES = ("nll", "crps", "coverage", "level", "seconds")
HELD_OUT = 200
MOST_OZONE = 75.0
"""Parts per billion."""
MEAN = 25.0
"""The variance of the mean of a level, for the process that knows its covariance: as good as not known."""


class Survey(NamedTuple):
    """Places `[n 2]`, in degrees where `coords` is "latlon", counts and exposures `[n]`, the first `seen` of which
    predict the others; of draws also levels and their covariances, and the standard deviation of their noise."""

    counts: AbstractCounts
    coords: str
    places: np.ndarray
    y: np.ndarray
    exposure: np.ndarray
    seen: int
    level: np.ndarray | None = None
    k: np.ndarray | None = None
    noise: float = 0.0

    @property
    def known(self):
        return self.places[: self.seen], self.y[: self.seen], self.exposure[: self.seen]


class Kind(NamedTuple):
    """Of draws: how many counts are seen, the mean of their levels, their noise, exposures from one to `most`, and
    whether they lie evenly along a line."""

    counts: AbstractCounts
    n: int
    middle: float
    noise: float
    most: int
    weekly: bool = False

    def surveys(self, folder, repeats):
        rng = np.random.default_rng(0)
        for _ in range(repeats):
            places = self._places(rng)
            k = matern32(places, rng.uniform(0.1, 0.4))
            smooth = self.middle + draw(rng, k)
            exposure = rng.integers(1, self.most + 1, len(places)).astype(float)
            rate = self.counts.rate(smooth + self.noise * rng.normal(size=len(places)))
            y = self.counts.draw(rng, exposure, rate)
            yield Survey(self.counts, "isotropic", places, y, exposure, self.n, smooth, k, self.noise)

    def _places(self, rng):
        if not self.weekly:
            return rng.uniform(size=(self.n + HELD_OUT, 2))
        return np.append(np.linspace(0, 1, self.n), rng.uniform(size=HELD_OUT))[:, None]


class Ozone(NamedTuple):
    """Days above 75 ppb, of a period of so many days, or of all."""

    days: int | None

    def surveys(self, folder, repeats):
        data, rng = fields.ozone(folder), np.random.default_rng(0)
        places = np.stack([data.lon, data.lat], axis=1)
        last = 0 if self.days is None else len(data.date) - self.days
        for first in np.linspace(0, last, repeats).astype(int):
            ozone = data.ozone[first:][: self.days]
            order = rng.permutation(len(places))
            exposure = np.isfinite(ozone).sum(axis=0)[order].astype(float)
            y = (ozone > MOST_OZONE).sum(axis=0)[order].astype(float)
            there = exposure > 0
            yield Survey(Binomial(), "latlon", places[order][there], y[there], exposure[there], there.sum() // 2)


KINDS = {
    "Ozone above 75 ppb, days of 89, at 76 of 153 stations": Ozone(None),
    "Ozone above 75 ppb, days of 14, at 76 of 153 stations": Ozone(14),
    "200 counts, 5 expected in each": Kind(Poisson(), 200, 0.0, 0.0, 5),
    "200 counts, 5 expected in each, overdispersed": Kind(Poisson(), 200, 0.0, 0.5, 5),
    "200 counts, a third expected in each": Kind(Poisson(), 200, -1.6, 0.0, 1),
    "260 weeks, 1.6 expected in each": Kind(Poisson(), 260, 0.0, 0.0, 1, weekly=True),
    "260 weeks, a third expected in each": Kind(Poisson(), 260, -1.6, 0.0, 1, weekly=True),
    "150 places, 1 to 20 tested, a half positive": Kind(Binomial(), 150, 0.0, 0.0, 20),
    "150 places, 1 to 20 tested, a tenth positive": Kind(Binomial(), 150, -2.5, 0.3, 20),
    "300 times yes or no": Kind(Binomial(), 300, 0.0, 0.0, 1),
}


def zero_shot(survey: Survey):
    x, y, exposure = survey.known
    field = npax.NeuralProcessRegressor(coords=survey.coords)
    reg = npax.CountRegressor(survey.counts, field).fit(x, y, exposure=exposure).regressor_
    mean, std = reg.predict(survey.places[survey.seen :], return_std=True)
    return mean, std, reg.predict(survey.places[survey.seen :], return_std=True, include_noise=False)[1]


def flat(survey):
    return chords(survey.places) if survey.coords == "latlon" else survey.places


def laplace(survey: Survey):
    x, (_, y, exposure) = flat(survey), survey.known
    mean, std = Laplace(survey.counts).levels(x[: survey.seen], y, exposure, x[survey.seen :])
    return mean, std, None


def of_logarithms(survey: Survey):
    x, (_, y, exposure) = flat(survey), survey.known
    if isinstance(survey.counts, Poisson):
        level, variance = np.log((y + 0.5) / exposure), 1 / (y + 0.5)
    else:
        level, variance = np.log((y + 0.5) / (exposure - y + 0.5)), 1 / (y + 0.5) + 1 / (exposure - y + 0.5)
    centre, width = x[: survey.seen].mean(axis=0), x[: survey.seen].std(axis=0).max()
    middle, spread = level.mean(), level.std()
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * Matern(1.0, (1e-2, 1e2), nu=1.5) + WhiteKernel(0.1, (1e-6, 1e1))
    gp = GaussianProcessRegressor(kernel, alpha=variance / spread**2, n_restarts_optimizer=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp.fit((x[: survey.seen] - centre) / width, (level - middle) / spread)
    mean, std = gp.predict((x[survey.seen :] - centre) / width, return_std=True)
    return middle + spread * mean, spread * std, None


def best(survey: Survey):
    """The process that knows its covariance and noise, and not its mean."""
    if survey.k is None:
        return None
    n, (_, y, exposure), k = survey.seen, survey.known, survey.k + MEAN

    def predict(seen, at=slice(None, n)):
        gain = np.linalg.solve(k[:n, :n] + np.diag(np.square(seen.error) + survey.noise**2), k[:n, at]).T
        variance = np.maximum(np.diag(k)[at] - np.einsum("ij,ij->i", gain, k[at, :n]), 1e-9)
        moments = gain @ seen.value, np.sqrt(variance + survey.noise**2), np.sqrt(variance)
        return Prediction(*(a[:, None] for a in moments))

    found = predict(linearised(survey.counts, y, exposure, predict).seen, slice(n, None))
    return tuple(a[:, 0] for a in found)


METHODS = {
    "npax, zero-shot": zero_shot,
    "GP of levels, Laplace, fitted": laplace,
    "GP of logarithms, fitted": of_logarithms,
    "best possible": best,
}


def scored(method, survey: Survey):
    started = time.monotonic()
    found = method(survey)
    if found is None:
        return None
    mean, std, of_smooth = found
    seconds = time.monotonic() - started
    report = score_report(survey.counts, survey.y[survey.seen :], survey.exposure[survey.seen :], mean, std)
    level = np.nan
    if survey.level is not None and of_smooth is not None:
        level = npax.metrics.crps(survey.level[survey.seen :], mean, of_smooth)
    return [report["nll"], report["crps"], report["coverage"], level, seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the file")
    parser.add_argument("--repeats", type=int, default=20, help="draws, random halves, or periods")
    options = parser.parse_args()
    parts, content = [], {}
    for title, kind in KINDS.items():
        found = {name: [] for name in METHODS}
        for survey in kind.surveys(options.data, options.repeats):
            for name, method in METHODS.items():
                scores = scored(method, survey)
                if scores is not None:
                    found[name].append(scores)
        rows = []
        for name, each in ((name, np.array(each)) for name, each in found.items() if each):
            beside = np.array(found["GP of levels, Laplace, fitted"])
            less = beside[:, 0] - each[:, 0]
            mean = dict(zip(SCORES, each.mean(axis=0).tolist(), strict=True)) | {
                "seconds": float(np.median(each[:, -1]))
            }
            mean |= {"nll_less": float(less.mean()), "nll_less_error": float(less.std(ddof=1) / len(less) ** 0.5)}
            content.setdefault(title, {})[name] = mean
            values = ["" if np.isnan(mean[column]) else f"{mean[column]:.3g}" for column in SCORES]
            rows.append([name, *values, f"{mean['nll_less']:.3f} ± {mean['nll_less_error']:.3f}"])
        columns = ["method", "NLL of a count", "CRPS of a count", "coverage", "CRPS of the level", "seconds"]
        parts.append(f"## {title}\n\n{table([*columns, 'NLL less than Laplace by'], rows)}")
        print(parts[-1], flush=True)
    head = (
        f"Means over {options.repeats} draws, random halves or periods; seconds: the median. ±: standard error of the "
        "paired differences; that of halves of the same days is too small. The level is that without noise."
    )
    about = circumstances()
    print(write_markdown("counts", "Rates of counts", "\n\n".join([head, *parts]), about))
    write_json("counts", {**about, "repeats": options.repeats, "rows": content})


if __name__ == "__main__":
    main()
