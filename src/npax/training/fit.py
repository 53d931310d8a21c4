"""Training: a flat, visible loop."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from .. import objectives
from ..arguments import true_or_false, whole_number
from ..devices import everywhere, first_for_all, global_mesh, here, is_first
from ..fingerprint import fingerprint
from ..models import AbstractNeuralProcess
from ..progress import Progress
from ..tasks import AbstractTasks, Curriculum, Stage
from ..warn import warn
from .checks import check_drawn, check_functions, check_precision, check_run, check_saving
from .lapack import without_deadlock
from .optimizers import muon
from .program import Chunk, forget_if_many, run, start
from .resume import alone, code_of_run, fingerprint_of_run, resumed, write_last


@dataclasses.dataclass(frozen=True)
class FitResult:
    """What `fit` returns.

    `model`: the trained model (with `seeds` > 1: its arrays have a leading seed axis, and `models` lists them one
    by one). `losses [steps]` or `[steps seeds]`: the training loss at each step of this call. `evaluations`: pairs
    of step and whatever `evaluate` returned. `skipped`: steps whose loss or gradient was not finite; they changed
    nothing. `seconds`: wall-clock time of this call. `opt_state`: the optimiser's state at the end, from which those
    that average weights give the average, such as `optax.contrib.schedule_free_eval_params(result.opt_state, params)`
    of `params = equinox.filter(result.model, equinox.is_inexact_array)`.
    """

    model: Any
    losses: np.ndarray
    evaluations: list[tuple[int, Any]]
    steps: int
    skipped: int
    seconds: float
    seeds: int = 1
    opt_state: Any = None

    @property
    def models(self) -> list:
        return unstack(self.model, self.seeds)


def unstack(model, seeds: int) -> list:
    """The models of several seeds, one by one."""
    if seeds == 1:
        return [model]
    arrays, rest = eqx.partition(model, eqx.is_array)
    return [eqx.combine(jax.tree.map(lambda a, i=i: a[i], arrays), rest) for i in range(seeds)]


def fit(
    model: AbstractNeuralProcess | Callable[[PRNGKeyArray], AbstractNeuralProcess],
    tasks: AbstractTasks | Curriculum,
    *,
    steps: int,
    key: PRNGKeyArray,
    batch_size: int = 32,
    objective: Callable | None = None,
    optimizer: optax.GradientTransformation | None = None,
    seeds: int = 1,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    save_every: float = 120.0,
    evaluate: Callable[[Any], Any] | None = None,
    evaluate_every: int | None = None,
    callback: Callable[[int, np.ndarray], Any] | None = None,
    devices: Sequence[jax.Device] | None = None,  # pyright: ignore[reportInvalidTypeForm]
    chunk: int = 25,
    progress: bool = True,
) -> FitResult:
    """Trains a model on tasks drawn afresh at every step, on the devices.

    `chunk` steps run as one loop of a program; between chunks the progress bar, checkpoints, evaluation and Ctrl-C have
    their turn. The tasks of a step depend on `key` and the number of the step alone, so a run that is killed and
    resumed ends with the same bytes as one that was not. A step whose loss, gradient or update is not finite is skipped
    and counted.

    **Arguments:** `model`: where to start; with `seeds` > 1 a function `key -> model`, so that each seed starts
    elsewhere (all seeds train side by side under `vmap`, on their own tasks). `tasks`: a sampler, or a `Curriculum`
    of several shapes (then `batch_size` is the curriculum's). `objective(model, task, key) -> scalar` of one
    task (default: what suits the model, `objectives.suited`); it may take gradients itself, of reverse mode.
    `optimizer`: an optax transformation that takes care of its schedule (default `muon(steps)`); no line search. Some
    weights stay as they are by `optax.masked(optax.set_to_zero(), fixed)` behind it in an `optax.chain`, where
    `fixed(params)` gives the parameters with True and False in the place of arrays. `checkpoint`: a
    folder; the state is saved there every `save_every` seconds, at the end and on Ctrl-C. `resume`: go on from the
    newest sound checkpoint in it. `evaluate(model) -> anything` (with `seeds` > 1 their
    models stacked, for `eqx.filter_vmap`): called every `evaluate_every` steps and at the end
    (one that is interrupted is not made up for when the run goes on); steps run in parts that divide both this number
    and `chunk`, so that multiples are cheapest. `callback(step, losses)`: called after each chunk with the number of
    the last step and the losses of its steps, to log them, say. Where `callback` or `evaluate` raises `StopIteration`
    the training ends, and its result is that of the steps until then.
    `devices`: those that share the work (default: all).

    **Several devices** (GPUs, TPU cores, or CPU cores after `npax.devices.one_device_per_core()`) share the tasks of
    each batch: each draws its own, and gradients are summed; model and optimiser are the same on all. Tasks and losses
    are those of one device, up to rounding, so a run can be resumed on more or fewer. Any batch size will do; one that
    is a multiple of the number of devices leaves none idle.
    Over several processes, call `jax.distributed.initialize()` before anything else (under SLURM and Open MPI it
    finds what it needs), then `fit` with the same arguments in each of them. The first alone reads and writes
    checkpoints and shows progress; `evaluate` runs in all, on a copy of their own, and all return the same.

    **Cost:** some seconds of compilation, then that of the steps;
    memory: on CPUs, that of the gradient of one task, or of as many as have some thousand points, not of the batch. A
    second `fit` with the same sizes, `steps`, objective and optimiser compiles nothing: pass the same objects, not new
    lambdas (`muon`, `adamw` and `yogi` return the same one for the same arguments).

    **Good values:** batch 32, `muon` at its defaults; a few thousand steps for a GP-1D specialist. On CPUs call
    `npax.devices.one_device_per_core()` before any other work with JAX, and on Linux start Python with the environment
    variable `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` (large pages of memory, a fifth less time); `npax train` does both.

    **Raises:** `ValueError` where an argument is out of range, the tasks have other columns than the model, or a
    checkpoint is of another run: of another model (with other weights at its start; those of the checkpoint itself will
    do), `key`, tasks, objective (both by their own code, and the numbers and arrays it reads of its module), kind of
    optimiser or batch size, or of more steps (more `steps`, and other learning rates, prolong it), or another training
    is running in its folder, or weights are of float16; `TypeError` for arguments of another kind; `KeyboardInterrupt`
    goes through after the checkpoint is written.
    **Warns** where a sampler does not look at its key, where `evaluate` fails at the end (the result lacks that
    evaluation; before, its errors end the training, which a checkpoint keeps) or a checkpoint cannot be written, where
    more than a tenth of the steps were skipped, since loss or gradient was not finite, and where samplers factorise
    batches of matrices on several CPU devices, of which one is used then (`AbstractTasks`).
    """
    counts = {"steps": steps, "batch_size": batch_size, "seeds": seeds, "chunk": chunk}
    counts |= {} if evaluate_every is None else {"evaluate_every": evaluate_every}
    whole_number(1, **counts)
    true_or_false(resume=resume, progress=progress)
    check_run(model, tasks, counts, key, optimizer)
    check_saving(checkpoint, save_every)
    check_functions(objective, evaluate, evaluate_every, callback)
    steps, batch_size, seeds, chunk = int(steps), int(batch_size), int(seeds), int(chunk)
    part = chunk if evaluate_every is None else math.gcd(chunk, evaluate_every)
    drawn = not isinstance(model, AbstractNeuralProcess)
    curriculum = tasks if isinstance(tasks, Curriculum) else Curriculum((Stage(tasks, batch_size),))
    optimizer = muon(steps) if optimizer is None else optimizer
    mesh = without_deadlock(global_mesh(devices), curriculum)
    init_key, run_key = jr.split(key)
    state = start(model, optimizer, seeds, init_key, drawn)
    check_precision(state.model)

    if objective is None:
        check_drawn(curriculum)
        objective = objectives.suited(state.model)
    about = {"steps": steps, "key": jr.key_data(key).tolist()}
    folder = Path(checkpoint).expanduser() if checkpoint is not None and is_first(mesh) else None
    if folder is not None:
        about["run"] = fingerprint_of_run(state, curriculum, objective, optimizer, chunk)
        about["start"] = None if drawn else fingerprint((state.model,))  # what is drawn depends on `key`
    with contextlib.ExitStack() as stack:
        with first_for_all(mesh):
            stack.enter_context(alone(folder))
            state = resumed(state, about, folder) if resume else state
        plan = curriculum.plan(-(-steps // chunk))
        code = code_of_run(curriculum, objective)
        contents = [f"{code} {_contents(stage.tasks)}" for stage in curriculum.stages]
        state, stages, numbers = everywhere((state, curriculum.stages, jr.key_data(run_key)), mesh)
        run_key = jr.wrap_key_data(numbers, impl=jr.key_impl(run_key))

        losses, evaluations, started, saved = [], [], time.monotonic(), time.monotonic()
        done = first = int(state.step)

        stopped, keep = False, 2 if first else 1  # a new run's first checkpoint replaces whatever the folder holds
        shown = progress and is_first(mesh)
        bar = stack.enter_context(Progress("Training", steps, shown=shown, done=done, note="compiling"))
        try:
            while done < steps:
                end = min((done // part + 1) * part, steps)
                which = plan[done // chunk]
                settings = objective, optimizer, seeds, mesh, contents[which]
                number = np.asarray(end - done, np.int32)
                state, loss = run(Chunk(state, run_key, stages[which], number, part, *settings))
                losses.append(loss)
                bar.advance(end - done, f"step {end:,} of {steps:,}, {_note(losses, state)}")
                before, done = done, end
                if callback is not None:
                    callback(done, losses[-1])
                if evaluate is not None and evaluate_every and done // evaluate_every > before // evaluate_every:
                    evaluations.append((done, evaluate(here(state.model))))
                if folder is not None and time.monotonic() - saved > save_every:
                    write_last(folder, done, state, about, keep)
                    saved, keep = time.monotonic(), 2
        except StopIteration:
            stopped = True
        finally:
            if folder is not None and int(state.step) > first:
                write_last(folder, int(state.step), state, about, keep)
    forget_if_many()
    state = here(state)
    _warn_of_skipped(int(np.max(np.asarray(state.skipped))), done)
    if evaluate is not None and not stopped and (not evaluations or evaluations[-1][0] != done):
        evaluations += _evaluated_last(evaluate, state.model, done)
    return FitResult(
        model=state.model,
        losses=np.concatenate(losses) if losses else np.zeros((0, seeds) if seeds > 1 else 0),
        evaluations=evaluations,
        steps=done,
        skipped=int(np.asarray(state.skipped).sum()),
        seconds=time.monotonic() - started,
        seeds=seeds,
        opt_state=state.opt_state,
    )


def _contents(tasks):
    """What tells a plain object from what it was at the last `fit`; of PyTrees the program knows by itself."""
    return fingerprint((tasks,)) if any(leaf is tasks for leaf in jax.tree.leaves(tasks)) else ""


def _warn_of_skipped(skipped, done):
    if skipped <= done / 10:
        return
    many, end = ("All", ": the model is the one that came") if skipped == done else (f"{skipped:,}", "")
    warn(
        f"{many} of the {done:,} steps were skipped, for loss or gradient was not finite{end}. Look for NaN or "
        "infinity in what `tasks` draws, and for values that the likelihood does not allow or scales of it that may be "
        "zero or negative.",
        RuntimeWarning,
    )


def _evaluated_last(evaluate, model, done):
    """What was trained is not to be lost because it cannot be evaluated."""
    try:
        return [(done, evaluate(model))]
    except StopIteration:
        return []
    except Exception as error:
        warn(f"`evaluate` failed at the end of the training: {type(error).__name__}: {error}.", RuntimeWarning)
        return []


def _note(losses, state, chunks=20):
    """What stands behind the bar: the mean of the last losses, and the steps that were skipped."""
    recent = np.concatenate([np.atleast_1d(chunk) for chunk in losses[-chunks:]])
    sound = recent[np.isfinite(recent)]
    loss = f"loss {sound.mean() if sound.size else np.nan:.3f}"
    skipped = int(np.asarray(state.skipped).sum())
    return f"{loss} ({skipped} skipped)" if skipped else loss
