import equinox as eqx
import numpy as np

from ._base import AbstractTasks


class Stage(eqx.Module):
    """Tasks of one shape, the batch size that suits it, and how often it comes up (relative to other stages)."""

    tasks: AbstractTasks
    batch_size: int = eqx.field(static=True)
    weight: float = eqx.field(static=True, default=1.0)
    start: float = eqx.field(static=True, default=0.0)
    """The share of the training after which the stage joins in: large contexts come late."""


class Curriculum(eqx.Module):
    """Several shapes of tasks in one training: a step draws from one of them, so each is compiled once.

    The order is fixed and even: of the stages that have started, the one that lags most behind its weight is next.

    **Raises:** `ValueError` where no stage is there from the start, one starts at the end or later, or weights or batch
    sizes are not positive.
    """

    stages: tuple[Stage, ...]

    def __check_init__(self):
        if not any(stage.start <= 0 for stage in self.stages):
            raise ValueError(f"One of `stages` must have `start` 0, got {[stage.start for stage in self.stages]}.")
        for stage in self.stages:
            if not stage.start < 1:
                raise ValueError(f"`start` must be below 1, the end of the training, got {stage.start}.")
            if stage.weight <= 0 or stage.batch_size < 1:
                raise ValueError(
                    "`weight` must be above 0 and `batch_size` at least 1 in every stage, "
                    f"got {stage.weight} and {stage.batch_size}."
                )

    def plan(self, chunks: int) -> np.ndarray:
        """Which stage each of `chunks` equal parts of the training uses: `[chunks]` integers."""
        weights = np.array([stage.weight for stage in self.stages])
        starts = np.array([stage.start for stage in self.stages])
        debt, plan = np.zeros(len(weights)), np.zeros(chunks, int)
        for i in range(chunks):
            share = weights * (starts <= i / chunks)
            debt += share / share.sum()
            plan[i] = np.argmax(np.where(share > 0, debt, -np.inf))
            debt[plan[i]] -= 1
        return plan
