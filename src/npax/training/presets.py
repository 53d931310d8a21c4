"""How the shipped models are trained: functions one can read, run and resume (`npax train NAME`)."""

from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..arguments import whole_number
from ..models import AbstractNeuralProcess, presets
from ..objectives import function_and_noise_nll, picture_nll
from ..pretrained import pretrained
from ..serialise import load
from ..tasks import (
    AbstractKernelPrior,
    AsPrior,
    Curriculum,
    FieldPrior,
    GPPosteriorTask,
    GPPrior,
    GPTask,
    Matern32Prior,
    RBFPrior,
    Stage,
)
from .fit import FitResult, fit
from .optimizers import muon, warmup_stable_decay

ERRORS = 0.45
"""Share of the tasks of `GPPrior` with known standard errors, by which `gp-universal` is trained."""


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
    """Trains the shipped model `gp-universal`: `models.presets.gp_universal` on `tasks.GPPrior` and, in two of five
    steps, on GP-1D (RBF, Matern 3/2) and GP-2D (RBF) of KR2, smooth functions with little noise, of which `GPPrior`
    draws few. In `ERRORS` of the tasks of `GPPrior` observations have known standard errors.

    Most steps see small contexts, cheap and many; larger ones join in later. The rate of Muon falls to zero over the
    last three quarters of `steps`: to prolong a run, resume it with more steps.

    **Arguments:** `resume`: go on from the newest checkpoint, or, where there is none, from the shipped weights (with
    a new optimiser). `batch_scale`: multiplies all batch sizes; 1 suits a CPU, 8 or more a GPU. `log(scores)`:
    called every 500 steps with the validation scores: by dimension (`validation_scores`), with known errors, and of
    KR2's tasks.
    **Cost:** 0.2 to 0.5 s per step on one CPU core. On an H200, with eight times the batches, 10 to 40 ms, and two
    minutes to compile on 16 cores. **Pitfall:** with small batches higher rates than these do harm.
    """
    whole_number(1, batch_scale=batch_scale)
    rbf, matern32, rbf_2d = _papers_gp(RBFPrior(), 1), _papers_gp(Matern32Prior(), 1), _papers_gp(RBFPrior(), 2)
    curriculum = Curriculum(
        (
            Stage(GPPrior(64, 64, errors=ERRORS), batch_size=16 * batch_scale, weight=0.30),
            Stage(GPPrior(192, 96, low=48, errors=ERRORS), batch_size=6 * batch_scale, weight=0.19, start=0.02),
            Stage(GPPrior(512, 128, low=128, errors=ERRORS), batch_size=3 * batch_scale, weight=0.11, start=0.05),
            Stage(GPPrior(1024, 192, low=384, errors=ERRORS), batch_size=2 * batch_scale, weight=0.02, start=0.98),
            Stage(rbf, batch_size=20 * batch_scale, weight=0.12),
            Stage(matern32, batch_size=20 * batch_scale, weight=0.10),
            Stage(rbf_2d, batch_size=8 * batch_scale, weight=0.16),
        )
    )
    tasks = jax.jit(jax.vmap(GPPrior(64, 64, low=3).sample))(jr.split(jr.key(seed + 1), 512))
    others = {"errors": GPPrior(64, 64, low=3, errors=1.0), "rbf": rbf, "matern32": matern32, "rbf_2d": rbf_2d}
    others = {name: jax.jit(jax.vmap(stage.sample))(jr.split(jr.key(seed + 2), 256)) for name, stage in others.items()}

    def evaluate(model):
        scores = validation_scores(model, tasks)
        return scores | {name: float(jnp.mean(_losses(model, batch))) for name, batch in others.items()}

    return fit(
        _first("gp-universal", presets.gp_universal, resume),
        curriculum,
        steps=steps,
        key=jr.key(seed),
        objective=function_and_noise_nll,
        optimizer=muon(steps, 3.6e-3, 5.4e-4, schedule=warmup_stable_decay),
        checkpoint=checkpoint,
        resume=resume,
        evaluate=_logged(evaluate, log),
        evaluate_every=500,
        chunk=20,
        progress=progress,
    )


def field_universal(
    *,
    steps: int = 20_000,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    progress: bool = True,
    batch_scale: int = 1,
    log: Callable[[dict[str, float]], None] | None = None,
) -> FitResult:
    """Trains the shipped model `field-universal`: `models.presets.field_universal` on `tasks.FieldPrior`.

    Pictures of 128 x 128 pixels; in the second half of `steps`, one step in four, of 256 x 256; in the last quarter,
    three in ten, of 384 x 384.

    **Arguments:** as for `gp_universal`; `log(scores)`: called every 500 steps with `picture_nll` on 64 pictures, 16
    of the larger and 8 of the largest size.
    **Cost:** about 0.7 s per step on one CPU core. On an H200, with four times the batches, 13 to 16 ms, and some
    minutes to compile.
    """
    whole_number(1, batch_scale=batch_scale)
    small, large, vast = FieldPrior(128), FieldPrior(256), FieldPrior(384)
    curriculum = Curriculum(
        (
            Stage(small, batch_size=8 * batch_scale, weight=0.45),
            Stage(large, batch_size=2 * batch_scale, weight=0.25, start=0.5),
            Stage(vast, batch_size=batch_scale, weight=0.3, start=0.75),
        )
    )
    pictures = {
        name: jax.jit(jax.vmap(tasks.sample))(jr.split(jr.key(seed + 1), number))
        for name, tasks, number in (("small", small, 64), ("large", large, 16), ("vast", vast, 8))
    }

    def evaluate(model):
        return {name: float(jnp.mean(_picture_losses(model, batch))) for name, batch in pictures.items()}

    return fit(
        _first("field-universal", presets.field_universal, resume),
        curriculum,
        steps=steps,
        key=jr.key(seed),
        objective=picture_nll,
        optimizer=muon(steps, schedule=warmup_stable_decay),
        checkpoint=checkpoint,
        resume=resume,
        evaluate=_logged(evaluate, log),
        evaluate_every=500,
        chunk=10,
        progress=progress,
    )


def _logged(evaluate, log):
    def logged(model):
        scores = evaluate(model)
        if log is not None:
            log(scores)
        return scores

    return logged


def _first(name, architecture, resume):
    """What makes the weights to start from, the shipped ones where there are some; a function in either case, so that
    a run goes on by `resume` whichever it began with."""
    shipped = resume and name in pretrained()
    return lambda key: load(name) if shipped else architecture(key=key)


@eqx.filter_jit
def _picture_losses(model, pictures):
    return jax.lax.map(lambda picture: picture_nll(model, picture), pictures)


def _papers_gp(kernel: AbstractKernelPrior, dx: int) -> AsPrior:
    """GP-1D or GP-2D of KR2 with fewer nodes in the grid of targets, which makes the step cheaper."""
    tasks = GPTask(kernel, nc=50, low=3, grid=30) if dx == 1 else GPTask(kernel, dx=2, nc=128, low=12, grid=8)
    return AsPrior(GPPosteriorTask(tasks))


@eqx.filter_jit
def _losses(model, tasks):
    return jax.lax.map(lambda task: function_and_noise_nll(model, task), tasks, batch_size=32)


def validation_scores(model: AbstractNeuralProcess, tasks) -> dict[str, float]:
    """Mean objective over the tasks of one, two and three dimensions, and over all."""
    losses = _losses(model, tasks)
    dimension = jnp.sum(jnp.any(tasks.task.xt != 0, axis=1), axis=-1)
    scores = {f"{d}d": float(jnp.mean(losses, where=dimension == d)) for d in (1, 2, 3)}
    return {**scores, "all": float(jnp.mean(losses))}
