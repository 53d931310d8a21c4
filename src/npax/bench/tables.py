"""What is trained and what it is scored on, table by table."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from .. import data as datasets
from ..likelihoods import AbstractLikelihood, Categorical, HeteroscedasticGaussian, HomoscedasticGaussian
from ..tasks import (
    AbstractGPTask,
    AbstractKernelPrior,
    AbstractTasks,
    GPShiftTask,
    Matern32Prior,
    PeriodicPrior,
    RBFPrior,
    ScaledRBFPrior,
    gp_1d,
    gp_1d_anp,
    gp_1d_shift,
    gp_2d,
    image_completion,
    sir_lattice,
    translated_images,
)

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
    "anp": "GP-1D of ANP",
    "mnist": "MNIST",
    "celeba": "CelebA, 32 x 32",
    "cifar10": "CIFAR-10",
    "tmnist": "T-MNIST",
    "tcifar10": "T-CIFAR-10",
    "sir-64": "SIR, 64 x 64",
    "sir-128": "SIR, trained on 64 x 64, on 128 x 128",
    "sir-256": "SIR, trained on 64 x 64, on 256 x 256",
    "sir-1024": "SIR, trained on 64 x 64, on 1024 x 1024",
}
"""The tables there are, in the order of reports."""


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of a comparison: all its rows are trained on `tasks` and scored on each of `evaluations`.

    `name` is that of files, `trained` that of the table whose trainings it shares, if another's. `likelihood` is what
    all rows predict with, where not each its own; rows `without` cannot. Where all evaluations are Gaussian processes
    there are an oracle and a Bayes floor; `nodes` is the size of the floor's quadrature: twice as many change no floor
    by more than 0.002 nats, and that of the periodic kernel (twice as many periods) by about 0.01.
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
    trained: str | None = None
    nodes: int = 32

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


def shift(shifts: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)) -> Table:
    """GP-1D-shift of TE: trained where the tasks are, scored there and at a distance, noise of the targets included."""
    evaluations = {f"shift-{shift:g}": gp_1d_shift(shift) for shift in shifts}
    return Table("shift", TITLES["shift"], gp_1d_shift(), evaluations, nodes=16)


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
    """T-MNIST of TE: digits anywhere on a canvas of 56 x 56."""
    return _translated("tmnist", datasets.mnist(data))


def tcifar10(data: Path | None = None) -> Table:
    """T-CIFAR-10 of TE: images anywhere on a canvas of 64 x 64."""
    return _translated("tcifar10", datasets.cifar10(data))


def sir(lattice: int = 64) -> Table:
    """SIR of KR2: trained on 64 x 64 cells, scored there and on a larger lattice. **Raises** `ValueError` for a side
    that is not one of KR2's."""
    tasks, larger = sir_lattice(64), sir_lattice(lattice)
    return Table(
        f"sir-{lattice}",
        TITLES[f"sir-{lattice}"],
        tasks,
        {"sir-64": tasks, f"sir-{lattice}": larger},
        batch_size=16,
        dx=2,
        dy=3,
        likelihood=Categorical(3),
        without=("bnp", "banp", "tnp_nd"),
        trained="sir-64",
    )


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
        translated_images(images.train),
        {name: translated_images(images.test)},
        batch_size=16,
        dx=2,
        dy=dy,
        likelihood=HomoscedasticGaussian(dy),
        without=("tnp_nd",),
    )
