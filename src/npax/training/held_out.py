"""Training that keeps the model which is best on what is held out."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..devices import local_mesh
from ..tasks import AbstractTasks
from .fit import fit
from .optimizers import adamw


@dataclasses.dataclass(frozen=True)
class Finetuned:
    """What fine-tuning returns: the `model` that was best on held-out gaps, the number of `steps` after which it was
    (0: the model as it came), `validation`: pairs of step and negative log-likelihood on those gaps; and where these
    are of observations, `held_out [n]`: which they hide."""

    model: Any
    steps: int
    validation: list[tuple[int, float]]
    held_out: np.ndarray | None = None


def fit_and_keep_best(
    model: Any,
    tasks: AbstractTasks,
    held_out: Any,
    objective: Callable[..., Any],
    *,
    steps: int,
    every: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    together: int | None,
    chunk: int,
    progress: bool,
) -> Finetuned:
    """Trains on `tasks`, scores on those that are `held_out` (stacked) before, every so many steps, and at the end.

    **Arguments:** `objective(model, task)`: of training and scores; `together`: tasks that are scored at a time, by
    `vmap`; None: one, without. The others as for `fit`.
    """
    lowest = float(_mean(model, held_out, objective, together))
    validation = [(0, lowest)]
    best = Finetuned(model, 0, validation)

    def score(model):
        nonlocal best, lowest
        step, loss = min(validation[-1][0] + every, steps), float(_mean(model, held_out, objective, together))
        validation.append((step, loss))
        if loss < lowest or (math.isnan(lowest) and not math.isnan(loss)):
            best, lowest = Finetuned(model, step, validation), loss

    fit(
        model,
        tasks,
        steps=steps,
        key=jr.key(seed),
        batch_size=batch_size,
        objective=objective,
        optimizer=adamw(steps, learning_rate),
        evaluate=score,
        evaluate_every=every,
        devices=list(local_mesh().devices.flat),
        chunk=chunk,
        progress=progress,
    )
    return best


@eqx.filter_jit
def _mean(model, tasks, objective, together):
    return jnp.mean(jax.lax.map(lambda task: objective(model, task), tasks, batch_size=together))
