"""What is trained and what it is scored on, table by table."""

import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .. import data as datasets
from ..files import write_atomically
from ..likelihoods import AbstractLikelihood, Categorical, HeteroscedasticGaussian, HomoscedasticGaussian
from ..tasks import (
    CENTRAL_EUROPE,
    NORTHERN_EUROPE,
    WESTERN_EUROPE,
    AbstractGPTask,
    AbstractKernelPrior,
    AbstractTasks,
    GPShiftTask,
    KolmogorovTask,
    Matern32Prior,
    PeriodicPrior,
    RBFPrior,
    ScaledRBFPrior,
    days,
    gp_1d,
    gp_1d_anp,
    gp_1d_bimodal,
    gp_1d_shift,
    gp_2d,
    gridded,
    image_completion,
    kolmogorov_flow,
    neighbourhoods,
    sir_lattice,
    translated_images,
)
from ..tasks.sir import STEPS as LATTICES

SHIFTS = (0.0, 0.5, 1.0, 2.0)
"""Of GP-1D-shift."""
TRAJECTORIES = 72
"""Flows that are simulated."""
KERNELS: Mapping[str, AbstractKernelPrior] = {
    "rbf": RBFPrior(),
    "matern32": Matern32Prior(),
    "periodic": PeriodicPrior(),
}

TITLES: Mapping[str, str] = {
    "gp1d-rbf": "GP-1D, RBF",
    "gp1d-matern32": "GP-1D, Matern 3/2",
    "gp1d-periodic": "GP-1D, periodic",
    "gp2d-rbf": "GP-2D, RBF",
    "shift": "GP-1D-shift",
    "bimodal": "GP-1D-shift, trained on [-2, 2], at 1 to 4 on either side of the origin",
    "anp": "GP-1D of ANP",
    "mnist": "MNIST",
    "celeba": "CelebA, 32 x 32",
    "cifar10": "CIFAR-10",
    "tmnist": "T-MNIST",
    "tcifar10": "T-CIFAR-10",
    "kolmogorov": "Kolmogorov flow",
    "environment": "Temperature at 2 m, trained on Central Europe",
    "stations-ozone": "Ozone of the Midwest, days not trained on",
    "stations-rainfall": "Rainfall of North America, trained west of 100 W",
    "stations-argo": "Ocean temperature, trained outside the Pacific",
    "sir-64": "SIR, 64 x 64",
    "sir-128": "SIR, trained on 64 x 64, on 128 x 128",
    "sir-128-tiled": "SIR, trained on 64 x 64, on 128 x 128 in tiles",
    "sir-256": "SIR, trained on 64 x 64, on 256 x 256",
    "sir-256-tiled": "SIR, trained on 64 x 64, on 256 x 256 in tiles",
    "sir-1024": "SIR, trained on 64 x 64, on 1024 x 1024 in tiles",
}
"""The tables there are, in the order of reports."""


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of a comparison: all its rows are trained on `tasks` and scored on each of `evaluations`.

    `name` is that of files, `trained` that of the table whose trainings it shares, if another's. `likelihood` is what
    all rows predict with, where not each its own; rows `without` cannot. `baselines` are rows that are not trained:
    `gp`, fitted to each task. Where all evaluations are Gaussian processes there are an oracle and a Bayes floor;
    `nodes` is the size of the floor's quadrature: twice as many change no floor by more than 0.002 nats, and that of
    the periodic kernel (twice as many periods) by about 0.01. `tiled`: all contexts are seen in tiles, not only large
    ones.
    """

    name: str
    title: str
    tasks: AbstractTasks
    evaluations: Mapping[str, AbstractTasks]
    batch_size: int = 32
    dx: int = 1
    dy: int = 1
    likelihood: AbstractLikelihood | None = None
    without: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    trained: str | None = None
    nodes: int = 32
    tiled: bool = False

    @property
    def gaussian_processes(self) -> dict[str, AbstractGPTask]:
        """The evaluations, if they are all Gaussian processes; else nothing."""
        known = {name: tasks for name, tasks in self.evaluations.items() if isinstance(tasks, AbstractGPTask)}
        return known if len(known) == len(self.evaluations) else {}


def gp1d(kernel: str = "rbf") -> Table:
    """GP-1D of KR2. **Raises** `ValueError` for a kernel that is not one of `KERNELS`."""
    if kernel not in KERNELS:
        raise ValueError(f"There is no kernel '{kernel}'; there is: {', '.join(KERNELS)}.")
    name, tasks = f"gp1d-{kernel}", gp_1d(KERNELS[kernel])
    return Table(name, TITLES[name], tasks, {name: tasks}, nodes=16 if kernel == "periodic" else 32)


def gp2d() -> Table:
    """GP-2D of KR2, batches of 16."""
    return Table("gp2d-rbf", TITLES["gp2d-rbf"], gp_2d(), {"gp2d-rbf": gp_2d()}, batch_size=16, dx=2)


def shift(shifts: tuple[float, ...] = SHIFTS) -> Table:
    """GP-1D-shift of TE: trained where the tasks are, scored there and at a distance, noise of the targets included.
    Batches are of 32 as in the other tables of one dimension (TE: 16)."""
    evaluations = {f"shift-{shift:g}": gp_1d_shift(shift) for shift in shifts}
    name = "shift" if shifts == SHIFTS else "-".join(evaluations)
    return Table(name, TITLES["shift"], gp_1d_shift(), evaluations, nodes=16)


def bimodal() -> Table:
    """Models of GP-1D-shift where all locations are in two clusters, beside the origin (TE F.5)."""
    evaluations = {"shift-0": gp_1d_shift(), "bimodal": gp_1d_bimodal()}
    return Table("bimodal", TITLES["bimodal"], gp_1d_shift(), evaluations, trained="shift", nodes=16)


def anp() -> Table:
    """GP-1D of ANP, scored on observations at new points: those of the context are known exactly."""
    apart = GPShiftTask(ScaledRBFPrior(), nc=100, low=3, nt=100, reach=2.0, noise_std=0.02)
    return Table("anp", TITLES["anp"], gp_1d_anp(), {"anp": apart}, batch_size=16, nodes=16)


def mnist(data: Path | None = None) -> Table:
    """Image completion of KR2 on MNIST; `data`: the file or its folder (default: that of NPAX_DATA)."""
    return _completion("mnist", datasets.mnist(data))


def celeba(data: Path | None = None) -> Table:
    """Image completion of KR2 on CelebA, on images of the file's own split (see `npax.data.celeba32`)."""
    return _completion("celeba", datasets.celeba32(data))


def cifar10(data: Path | None = None) -> Table:
    """Image completion of KR2 on CIFAR-10."""
    return _completion("cifar10", datasets.cifar10(data))


def tmnist(data: Path | None = None) -> Table:
    """T-MNIST of TE: digits anywhere on a canvas of 56 x 56. 128 of the pixels that are not seen are targets of
    training, all of them of tests."""
    return _translated("tmnist", datasets.mnist(data))


def tcifar10(data: Path | None = None) -> Table:
    """T-CIFAR-10 of TE: images anywhere on a canvas of 64 x 64. Targets as for T-MNIST."""
    return _translated("tcifar10", datasets.cifar10(data))


def sir(lattice: int = 64, tiled: bool = False) -> Table:
    """SIR of KR2: trained on 64 x 64 cells, scored there and on a larger lattice, where every target sees the whole
    context, or, `tiled`, the observations around it, no more than in training. On 1024 x 1024 it always does.

    **Raises** `ValueError` for a side that is not one of KR2's, and for tiles where they make no difference.
    """
    if lattice not in LATTICES:
        raise ValueError(f"`lattice` must be one of {', '.join(map(str, LATTICES))}, got {lattice}.")
    name = f"sir-{lattice}-tiled" if tiled else f"sir-{lattice}"
    if name not in TITLES:
        raise ValueError(f"`tiled` makes no difference for `lattice` = {lattice}: leave it out.")
    tasks, larger = sir_lattice(64), sir_lattice(lattice)
    return Table(
        name,
        TITLES[name],
        tasks,
        {"sir-64": tasks, f"sir-{lattice}": larger},
        batch_size=16,
        dx=2,
        dy=3,
        likelihood=Categorical(3),
        without=("bnp", "banp", "tnp_nd"),
        trained="sir-64",
        tiled=tiled,
    )


def kolmogorov(folder: Path, trajectories: int = TRAJECTORIES) -> Table:
    """Kolmogorov flow of TE, batches of 16: one trajectory in eight is for tests. 256 of the nodes that are not seen
    are targets of training, 1,024 of tests. The flows are simulated once and kept in `folder`."""
    held_out = max(1, trajectories // 8)
    flow = _flow(folder / f"kolmogorov-{trajectories}.npy", trajectories)
    return Table(
        "kolmogorov" if trajectories == TRAJECTORIES else f"kolmogorov-{trajectories}",
        TITLES["kolmogorov"],
        KolmogorovTask(flow[held_out:], nt=256),
        {"kolmogorov": KolmogorovTask(flow[:held_out], nt=1024)},
        batch_size=16,
        dx=3,
        dy=2,
        without=("convcnp",),  # whose grid is narrower than these coordinates
        baselines=("gp",),
    )


def environment(data: Path | None = None) -> Table:
    """Environment of TE on `npax.data.era5_europe`, batches of 16: trained on Central Europe, tested there and to the
    west and north of it, at the same times. Nodes are 0.5 degrees and 6 hours apart."""
    dataset = datasets.era5_europe(data)
    train = gridded(dataset, "t2m", region=CENTRAL_EUROPE, stride=(2, 2, 1), nt=256)
    regions = {"central": CENTRAL_EUROPE, "western": WESTERN_EUROPE, "northern": NORTHERN_EUROPE}
    tests = {
        f"environment-{name}": gridded(dataset, "t2m", region=region, scaling=train.scaling, stride=(2, 2, 1))
        for name, region in regions.items()
    }
    return Table(
        "environment", TITLES["environment"], train, tests, batch_size=16, dx=4, without=("convcnp",), baselines=("gp",)
    )


def stations(network: str = "ozone", data: Path | None = None) -> Table:
    """Observations of real stations, batches of 16; what is trained on and what is tested on share none.

    - `ozone`: a task is a day; the last third of the summer is for tests.
    - `rainfall`: a task is a neighbourhood of 128 stations; trained west of 100 W, tested east of 95 W.
    - `argo`: a task is a neighbourhood of 256 profiles; trained outside the Pacific, tested in it.

    **Raises** `ValueError` for another `network`.
    """
    match network:
        case "ozone":
            found = datasets.ozone(data)
            x, first = np.stack([found.lon, found.lat], axis=1), 2 * len(found.ozone) // 3
            train, scaling = days(x, found.ozone[:first])
            test, _ = days(x, found.ozone[first:], scaling=scaling)
        case "rainfall":
            found = datasets.rainfall(data)
            x = np.stack([found.lon, found.lat], axis=1)
            west, east = found.lon < -100, found.lon > -95
            train, test = (neighbourhoods(x[at], found.rain[at], size=128, coords="latlon") for at in (west, east))
        case "argo":
            found = datasets.argo()
            x, pacific = np.stack([found.lon, found.lat], axis=1), (found.lon > 130) & (found.lon < 285)
            train, test = (neighbourhoods(x[at], found.temp[at], coords="latlon") for at in (~pacific, pacific))
        case _:
            raise ValueError(f"There is no network '{network}'; there is: ozone, rainfall, argo.")
    name, dx = f"stations-{network}", train.x.shape[-1]
    return Table(name, TITLES[name], train, {name: test}, batch_size=16, dx=dx, without=("convcnp",), baselines=("gp",))


def _flow(path, trajectories):
    if not path.exists():
        content = io.BytesIO()
        np.save(content, np.asarray(kolmogorov_flow(jr.key(0), trajectories, progress=True)))
        write_atomically(path, content.getvalue())
    try:
        return jnp.asarray(np.load(path))
    except (ValueError, EOFError) as error:
        raise ValueError(f"'{path}' is damaged: {error}. Delete it; the same command simulates it anew.") from error


def _completion(name, images):
    dy = images.train.shape[-1]
    return Table(
        name,
        TITLES[name],
        image_completion(images.train),
        {name: image_completion(images.test)},
        batch_size=16,
        dx=2,
        dy=dy,
        likelihood=HeteroscedasticGaussian(dy, min_std=0.05),
        without=("tnp_nd",),
    )


def _translated(name, images):
    dy = images.train.shape[-1]
    return Table(
        name,
        TITLES[name],
        translated_images(images.train, nt=128),
        {name: translated_images(images.test)},
        batch_size=16,
        dx=2,
        dy=dy,
        likelihood=HomoscedasticGaussian(dy),
        without=("tnp_nd",),
    )
