"""What is trained and what it is scored on, table by table."""

import dataclasses
from collections.abc import Mapping

from ..tasks import (
    AbstractGPTask,
    AbstractKernelPrior,
    GPShiftTask,
    Matern32Prior,
    PeriodicPrior,
    RBFPrior,
    ScaledRBFPrior,
    gp_1d,
    gp_1d_anp,
    gp_1d_shift,
    gp_2d,
)

KERNELS: Mapping[str, AbstractKernelPrior] = {
    "rbf": RBFPrior(),
    "matern32": Matern32Prior(),
    "periodic": PeriodicPrior(),
}


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of a comparison: all its rows are trained on `tasks` and scored on each of `evaluations`.

    `name` is that of files. `nodes` is the size of the floor's quadrature: twice as many change no floor by more than
    0.002 nats, and that of the periodic kernel (twice as many periods) by about 0.01.
    """

    name: str
    title: str
    tasks: AbstractGPTask
    evaluations: Mapping[str, AbstractGPTask]
    batch_size: int = 32
    dx: int = 1
    nodes: int = 32


def gp1d(kernel: str = "rbf") -> Table:
    """GP-1D of KR2. **Raises** `ValueError` for a kernel that is not one of `KERNELS`."""
    if kernel not in KERNELS:
        raise ValueError(f"There is no kernel '{kernel}'; there is: {', '.join(KERNELS)}.")
    name, tasks = f"gp1d-{kernel}", gp_1d(KERNELS[kernel])
    title = {"rbf": "RBF", "matern32": "Matern 3/2", "periodic": "periodic"}[kernel]
    return Table(name, f"GP-1D, {title}", tasks, {name: tasks}, nodes=16 if kernel == "periodic" else 32)


def gp2d() -> Table:
    """GP-2D of KR2, batches of 16."""
    return Table("gp2d-rbf", "GP-2D, RBF", gp_2d(), {"gp2d-rbf": gp_2d()}, batch_size=16, dx=2)


def shift(shifts: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)) -> Table:
    """GP-1D-shift of TE: trained where the tasks are, scored there and at a distance, noise of the targets included."""
    evaluations = {f"shift-{shift:g}": gp_1d_shift(shift) for shift in shifts}
    return Table("shift", "GP-1D-shift", gp_1d_shift(), evaluations, nodes=16)


def anp() -> Table:
    """GP-1D of ANP, scored on observations at new points: those of the context are known exactly."""
    apart = GPShiftTask(ScaledRBFPrior(), nc=100, low=3, nt=100, reach=2.0, noise_std=0.02)
    return Table("anp", "GP-1D of ANP", gp_1d_anp(), {"anp": apart}, batch_size=16, nodes=16)
