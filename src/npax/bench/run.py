"""One row of a table: train, score, write."""

import dataclasses
import inspect
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..models import AbstractNeuralProcess, presets
from ..serialise import count_parameters, save
from ..task import Task
from ..training import fit
from ..training.resume import alone
from .curve import Curve
from .floors import score_floor, score_gp, score_oracle
from .results import Result, Run, circumstances, finished, read, write
from .scores import GROUP, Scores, draw, mean_and_error, score_model
from .tables import Table

EVALUATION_SEED = 2026
POINTS = 8
"""Points of a learning curve, about."""
FEWEST, PAIRS = 8, 2**24
"""Tasks of a learning curve at least, and their pairs of context and target at most."""


def model_presets() -> dict[str, Callable[..., AbstractNeuralProcess]]:
    """The rows: functions of `npax.models.presets` that take `dx`, `dy` and `key`, and most of them `likelihood`."""
    return {
        name: function
        for name, function in vars(presets).items()
        if inspect.isfunction(function)
        and function.__module__ == presets.__name__
        and {"dx", "dy", "key"} <= set(inspect.signature(function).parameters)
    }


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A table with its evaluation tasks, the NLL of the Bayes floor on each of them if there is one, and the folder of
    results."""

    table: Table
    batches: dict[str, Task]
    floor: dict[str, np.ndarray]
    results: Path
    tasks: int


BASELINES = {"gp": score_gp}
"""Rows that are not trained: functions of a batch of tasks."""


def rows(table: Table) -> list[str]:
    """The names of a table's rows: presets, and baselines."""
    return [*(name for name in model_presets() if name not in table.without), *table.baselines]


def run_of(table: Table, model: str, tasks: int, steps: int, seeds: int) -> Run:
    """What a row is called on disk; baselines have no steps and no seeds."""
    return Run(table.name, model, tasks) if model in BASELINES else Run(table.name, model, tasks, steps, seeds)


def prepare(table: Table, tasks: int, results: Path, log: Callable[[str], None] = print) -> Benchmark:
    """Draws the evaluation tasks, and scores the references on them where no results of theirs are there yet.

    References are of Gaussian processes: other tasks have none. Others stand in for tasks without a target (a draw that
    broke down, a part of a field without values).
    """
    drawn = {name: _with_targets(sampler, tasks, log) for name, sampler in table.evaluations.items()}
    floor: dict[str, np.ndarray] = {}
    known = table.gaussian_processes
    for model, title in {"bayes_floor": "Bayes floor", "oracle": "oracle GP"}.items() if known else ():
        this = Run(table.name, model, tasks)
        if not finished(results, this):
            log(f"{table.title}: {title} of {tasks:,} evaluation tasks (once, kept for later) ...")
            started = time.monotonic()
            scores = {
                name: score_floor(sampler, drawn[name][0], table.nodes)
                if model == "bayes_floor"
                else score_oracle(sampler, *drawn[name])
                for name, sampler in known.items()
            }
            floor = floor or {name: each["nll"] for name, each in scores.items()}
            seconds = time.monotonic() - started
            _write(results, this, {name: [each] for name, each in scores.items()}, floor, seconds=seconds)
        if model == "bayes_floor":
            floor = {name: nll[0] for name, nll in read(results / f"{this.name}.jsonl")[1].items()}
    return Benchmark(table, {name: batch for name, (batch, _) in drawn.items()}, floor, results, tasks)


def run(
    benchmark: Benchmark,
    model: str,
    *,
    steps: int,
    seeds: int = 1,
    folder: Path,
    preset: Callable[..., AbstractNeuralProcess] | None = None,
    progress: bool = True,
    log: Callable[[str], None] | None = None,
) -> list[Result]:
    """Trains a preset, or a model of your own, on the table's tasks and scores it: one result per evaluation and seed.

    All models train on the same tasks, with the same optimiser (`fit`'s default) and number of steps, each by its own
    objective. What is finished is read, not run again; what was interrupted goes on from its checkpoint.

    **Arguments:** `model`: one of `rows`, or what your own is called (what is finished under a name is read: another
    for each version); `preset`: what makes your own, `preset(dx, dy, key=key)`, of tables with a likelihood of their
    own also with `likelihood=`; `steps`, `seeds` of the training (seeds side by side, by `vmap`), which baselines do
    without; `folder`: of the checkpoints and trained weights (`seed-0.safetensors`, ...), a sub-folder for each run;
    `progress`: show a bar; `log`: is told of each point of the learning curve, for where there is no bar.
    """
    table = benchmark.table
    if preset is None and model not in {*model_presets(), *BASELINES}:
        raise ValueError(
            f"`model` must be one of the rows of {table.title}, {', '.join(rows(table))}; got {model!r}. Of a model of "
            "your own say by `preset` what makes it."
        )
    if preset is not None and model in {*model_presets(), *BASELINES}:
        raise ValueError(f"`model` must be a name of its own beside a `preset`; {model!r} is npax's.")
    if model in table.without or (model in BASELINES and model not in table.baselines):
        raise ValueError(f"`{model}` cannot be a row of {table.title}: its likelihood is another.")
    this = run_of(table, model, benchmark.tasks, steps, seeds)
    if finished(benchmark.results, this):
        return read(benchmark.results / f"{this.name}.jsonl")[0]
    if model in BASELINES:
        started = time.monotonic()
        scores = {name: [BASELINES[model](batch)] for name, batch in benchmark.batches.items()}
        return _write(benchmark.results, this, scores, benchmark.floor, seconds=time.monotonic() - started)
    preset = model_presets()[model] if preset is None else preset
    place = folder / f"{table.trained or table.name}.{model}.{steps}-steps.{seeds}-seeds"
    own = {} if table.likelihood is None else {"likelihood": table.likelihood}
    chunk = max(1, min(25, steps // POINTS))
    every = max(1, steps // POINTS // chunk) * chunk
    name, tasks = next(iter(table.evaluations.items()))
    few = _few(benchmark.batches[name])
    with alone(place):  # whoever trains there writes the curve
        curve = Curve(place, tasks, few, every=every, steps=steps, seeds=seeds)

    def evaluate(fitted):
        curve.add(fitted)
        if log is not None:
            step, nll = curve.points[-1]
            each = ", ".join(f"{value:.3f}" for value in nll)
            log(f"{model}: step {step:,} of {steps:,}, NLL {each}, {curve.seconds / 60:.1f} minutes")

    try:
        fitted = fit(
            lambda key: preset(table.dx, table.dy, key=key, **own),
            table.tasks,
            steps=steps,
            key=jr.key(0),
            batch_size=table.batch_size,
            seeds=seeds,
            checkpoint=place,
            evaluate=evaluate,
            evaluate_every=every,
            chunk=chunk,
            progress=progress,
        )
    finally:
        curve.save()
    models = fitted.models
    for seed, one in enumerate(models):
        save(place / f"seed-{seed}.safetensors", one, {"preset": model, "table": table.name, "steps": steps})
    scores = {
        name: [score_model(tasks, benchmark.batches[name], one, table.tiled) for one in models]
        for name, tasks in table.evaluations.items()
    }
    return _write(
        benchmark.results,
        this,
        scores,
        benchmark.floor,
        seconds=curve.seconds,
        batch=table.batch_size,
        parameters=count_parameters(models[0]),
        skipped=fitted.skipped,
        curve=curve.points,
    )


def _with_targets(sampler, n, log):
    """`n` tasks that have any target; the kernels they came from, if there are any."""
    parts, count, seed = [], 0, EVALUATION_SEED
    while count < n:
        drawn = draw(sampler, n, seed)
        known = np.asarray(jnp.any(drawn[0].mask_t, axis=1))
        if not known.any():
            raise ValueError(f"None of the {n:,} evaluation tasks has a target: there is nothing to score.")
        if not parts and not known.all():
            log(f"{np.sum(~known):,} of {n:,} evaluation tasks have no target: others stand in for them.")
        parts.append(jax.tree.map(lambda a, known=known: a[known], drawn))
        count, seed = count + known.sum(), seed + 1
    return jax.tree.map(lambda *parts: jnp.concatenate(parts)[:n], *parts)


def _few(batch: Task) -> Task:
    """The tasks of a learning curve, scored again and again: fewer where they are large."""
    pairs = batch.xc.shape[1] * batch.xt.shape[1]
    return jax.tree.map(lambda a: a[: max(FEWEST, min(GROUP, PAIRS // max(pairs, 1)))], batch)


def _write(
    folder: Path,
    run: Run,
    scores: dict[str, list[Scores]],
    floor: dict[str, np.ndarray],
    *,
    seconds: float,
    batch: int = 0,
    parameters: int = 0,
    skipped: int = 0,
    curve=(),
) -> list[Result]:
    about = circumstances()
    results = [
        Result(
            **dataclasses.asdict(run),
            task=task,
            seed=seed,
            batch=batch,
            parameters=parameters,
            **_summary(each, floor.get(task)),
            seconds=round(seconds, 3),
            skipped=skipped,
            curve=[[step, nll[seed]] for step, nll in curve],
            **about,
        )
        for task, seeds in scores.items()
        for seed, each in enumerate(seeds)
    ]
    write(folder, run, results, {task: np.stack([each["nll"] for each in seeds]) for task, seeds in scores.items()})
    return results


def _summary(scores: Scores, floor: np.ndarray | None) -> dict[str, float | None]:
    nll, nll_error = mean_and_error(scores["nll"])
    gap, gap_error = (None, None) if floor is None else mean_and_error(scores["nll"] - floor)
    return {
        "nll": nll,
        "nll_error": nll_error,
        "gap": gap,
        "gap_error": gap_error,
        "rmse": float(np.sqrt(scores["squared_error"].mean())),
        "mae": float(scores["absolute_error"].mean()),
        "crps": float(scores["crps"].mean()),
        "coverage": float(scores["covered"].mean()),
    }
