"""How the shipped models are trained: functions one can read, run and resume (`npax train NAME`)."""

from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..models import AbstractNeuralProcess, presets
from ..objectives import function_and_noise_nll
from ..pretrained import pretrained
from ..serialise import load
from ..tasks import Curriculum, GPPrior, Stage
from .fit import FitResult, fit
from .optimizers import muon, warmup_stable_decay


def gp_universal(
    *,
    steps: int = 100_000,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    progress: bool = True,
    batch_scale: int = 1,
    log: Callable[[dict[str, float]], None] | None = None,
) -> FitResult:
    """Trains the shipped model `gp-universal`: `models.presets.gp_universal` on `tasks.GPPrior`.

    Most steps see small contexts, cheap and many; larger ones join in later. The rate of Muon falls to zero over the
    last three quarters of `steps`: to prolong a run, resume it with more steps.

    **Arguments:** `resume`: go on from the newest checkpoint, or, where there is none, from the shipped weights (with
    a new optimiser). `batch_scale`: multiplies all batch sizes; 1 suits a CPU, 16 or more a GPU. `log(scores)`:
    called every 500 steps with the validation scores by dimension (`validation_scores`).
    **Cost:** 0.25 to 0.5 s per step on one CPU core. **Pitfall:** with small batches higher rates than these do harm.
    """
    if batch_scale < 1:
        raise ValueError(f"`batch_scale` must be at least 1, got {batch_scale}.")
    curriculum = Curriculum(
        (
            Stage(GPPrior(64, 64), batch_size=16 * batch_scale, weight=0.70),
            Stage(GPPrior(192, 96, low=48), batch_size=6 * batch_scale, weight=0.18, start=0.02),
            Stage(GPPrior(512, 128, low=128), batch_size=3 * batch_scale, weight=0.10, start=0.05),
            Stage(GPPrior(1024, 192, low=384), batch_size=2 * batch_scale, weight=0.02, start=0.98),
        )
    )
    tasks = jax.jit(jax.vmap(GPPrior(64, 64, low=3).sample))(jr.split(jr.key(seed + 1), 512))

    def evaluate(model):
        scores = validation_scores(model, tasks)
        if log is not None:
            log(scores)
        return scores

    shipped = resume and "gp-universal" in pretrained()
    return fit(
        load("gp-universal") if shipped else lambda key: presets.gp_universal(key=key),
        curriculum,
        steps=steps,
        key=jr.key(seed),
        objective=function_and_noise_nll,
        optimizer=muon(steps, 3.6e-3, 5.4e-4, schedule=warmup_stable_decay),
        checkpoint=checkpoint,
        resume=resume,
        evaluate=evaluate,
        evaluate_every=500,
        chunk=20,
        progress=progress,
    )


@eqx.filter_jit
def _losses(model, tasks):
    return jax.lax.map(lambda task: function_and_noise_nll(model, task), tasks, batch_size=32)


def validation_scores(model: AbstractNeuralProcess, tasks) -> dict[str, float]:
    """Mean objective over the tasks of one, two and three dimensions, and over all."""
    losses = _losses(model, tasks)
    dimension = jnp.sum(jnp.any(tasks.task.xt != 0, axis=1), axis=-1)
    scores = {f"{d}d": float(jnp.mean(losses, where=dimension == d)) for d in (1, 2, 3)}
    return {**scores, "all": float(jnp.mean(losses))}
