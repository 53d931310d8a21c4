import math

import equinox as eqx
import numpy as np

from ..arguments import whole_number
from ._base import AbstractTasks


class Stage(eqx.Module):
    """Tasks of one shape, the batch size that suits it, and how often it comes up (relative to other stages).

    **Raises:** `TypeError` for no sampler; `ValueError` for a batch size that is no whole number of at least 1, a
    `weight` that is not positive, or where it starts at the end or later.
    """

    tasks: AbstractTasks
    batch_size: int = eqx.field(static=True)
    weight: float = eqx.field(static=True, default=1.0)
    start: float = eqx.field(static=True, default=0.0)
    """The share of the training after which the stage joins in: large contexts come late."""

    def __check_init__(self):
        if isinstance(self.tasks, type) or not callable(getattr(self.tasks, "sample", None)):
            raise TypeError(f"`tasks` must be a sampler, an object with a method `sample(key)`; got {self.tasks!r}.")
        whole_number(1, batch_size=self.batch_size)
        if not 0 < self.weight < math.inf:
            raise ValueError(f"`weight` must be finite and above 0 in every stage, got {self.weight}.")
        if not self.start < 1:
            raise ValueError(f"`start` must be below 1, the end of the training, got {self.start}.")


class Curriculum(eqx.Module):
    """Several shapes of tasks in one training: a step draws from one of them, so each is compiled once.

    The order is fixed and even: of the stages that have started, the one that lags most behind its weight is next, for
    as many steps as are compiled into one program, the `chunk` of `fit`, 25 by default. **Pitfall:** in a training of
    fewer than that for each stage the last ones get no turn; choose a smaller `chunk`.

    **Raises:** `TypeError` for something else than a sequence of `Stage`s; `ValueError` where none of them is there
    from the start.
    """

    stages: tuple[Stage, ...]

    def __check_init__(self):
        if not isinstance(self.stages, tuple | list) or not all(isinstance(stage, Stage) for stage in self.stages):
            raise TypeError(f"`stages` must be a tuple of `Stage`s, got {self.stages!r}.")
        if not any(stage.start <= 0 for stage in self.stages):
            raise ValueError(f"One of `stages` must have `start` 0, got {[stage.start for stage in self.stages]}.")

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
