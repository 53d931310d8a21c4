import datetime
import inspect
import shlex
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..pretrained import pretrained
from ._process import INTERRUPTED, check_folder, check_output, clear_errors, err, fail, out

if TYPE_CHECKING:
    from ..training import FitResult


def trainings() -> "dict[str, Callable[..., FitResult]]":
    """The presets by the names that the command takes: functions of `npax.training.presets` that give a `FitResult`."""
    from ..training import FitResult, presets

    return {
        name.replace("_", "-"): function
        for name, function in vars(presets).items()
        if inspect.isfunction(function)
        and function.__module__ == presets.__name__
        and inspect.get_annotations(function).get("return") is FitResult
    }


def train(
    preset: Annotated[str, typer.Argument(help="What to train, a preset: {trainings}.", show_default=False)],
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps in all, with those of the run resumed.", show_default="the preset's"),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder of the checkpoints.", show_default="runs/PRESET")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The weights.", show_default="PRESET.safetensors")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the initial weights and of the tasks.")] = 0,
    batch_scale: Annotated[
        int, typer.Option(min=1, help="Multiplies all batch sizes; 1 suits a CPU, 8 or more a GPU.")
    ] = 1,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="Train as one of the processes that srun or mpirun started.")
    ] = False,
) -> None:
    """Train a model, on all devices of this machine. Ctrl-C leaves a checkpoint to go on from, and so does SIGTERM,
    which schedulers send at the time limit.

    Examples:

      npax train gp-universal --steps 2000

      npax train gp-universal --resume

      srun npax train gp-universal --distributed

    A preset is a function of npax.training.presets: read it there, or write your own around npax.fit.
    """
    import jax

    from ..devices import one_device_per_core
    from ..serialise import save
    from ..training.checkpoint import checkpoints

    known = trainings()
    preset = preset.replace("_", "-")
    if preset not in known:
        fail(f"There is no preset '{preset}'; there is: {', '.join(known)}.")
    folder = Path("runs") / preset if checkpoint is None else checkpoint
    weights = Path(f"{preset}.safetensors") if output is None else output
    if weights.suffix != ".safetensors":
        fail(f"`--output` must end in .safetensors, got '{weights}'.")
    with clear_errors():
        check_folder(folder, "--checkpoint")
    if checkpoints(folder) and not resume:
        fail(f"'{folder}' holds checkpoints already: go on with --resume, or choose another folder by --checkpoint.")
    with clear_errors():
        check_output(weights)
    if distributed:
        _join()
    else:
        one_device_per_core()
    first = jax.process_index() == 0
    if resume and first and not checkpoints(folder):
        start = "the shipped weights" if preset in pretrained() else "the beginning"
        out.print(f"No checkpoint in {folder} yet: starting from {start}.")
    wanted = {} if steps is None else {"steps": steps}
    try:
        with clear_errors():
            given = {"seed": seed, "batch_scale": batch_scale, "checkpoint": folder, "resume": resume}
            result = known[preset](**given, **wanted)
            if first:
                save(weights, result.model, card(preset, seed, batch_scale, result))
    except KeyboardInterrupt:
        if not first:
            raise typer.Exit(INTERRUPTED) from None
        if not checkpoints(folder):
            err.print("\nStopped before the first checkpoint: nothing is lost; the same command starts anew.")
            raise typer.Exit(INTERRUPTED) from None
        given = {"--steps": steps, "--checkpoint": checkpoint, "--output": output, "--seed": seed or None}
        given |= {"--batch-scale": batch_scale if batch_scale > 1 else None}
        again = ["npax", "train", preset, "--resume", *(["--distributed"] if distributed else [])]
        again += [word for name, value in given.items() if value is not None for word in (name, str(value))]
        err.print(f"\nStopped. The checkpoint is in {folder}; go on with:\n  {shlex.join(again)}")
        raise typer.Exit(INTERRUPTED) from None
    if first:
        out.print(f"{result.steps:,} steps done; weights: {weights}")


def _join() -> None:
    """Finds the other processes of a launcher, before JAX looks for devices."""
    import jax

    try:
        jax.distributed.initialize()
    except ValueError as error:
        fail(
            f"`--distributed` found no launcher ({error}) Start it by srun or mpirun; elsewhere call "
            "jax.distributed.initialize(address, processes, number) in a script of yours, then npax.fit.",
            error,
        )


def card(preset: str, seed: int, batch_scale: int, result: "FitResult") -> dict:
    """What is worth knowing about trained weights: where they come from and how good they are."""
    from ..bench.results import device

    return {
        "preset": f"npax.training.presets.{preset.replace('-', '_')}",
        "steps": result.steps,
        "skipped": result.skipped,
        "seed": seed,
        "batch_scale": batch_scale,
        "date": datetime.date.today().isoformat(),
        "device": device(),
        "versions": {name: version(name) for name in ("npax", "jax", "equinox", "optax")},
        "validation": result.evaluations[-1][1] if result.evaluations else {},
    }
