import enum
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from .. import bench as harness
from ..files import write_atomically
from ._process import INTERRUPTED, check_ending, check_folder, check_output, clear_errors, err, named, out
from .names import NamesInHelp

FOLDER = Path("runs/bench")
"""Where all of them keep what they need to go on."""

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Train all models under one budget and compare them: with published figures, and on Gaussian processes with
    the Bayes floor and an oracle.

    npax bench gp1d --kernel rbf --model tnp_d,tnp_kr_sa --steps 1500

    npax bench mnist --data DATA --model convcnp,tnp_kr_sa

    npax bench report -o tables.md

    npax bench speed --largest 10000 -o speed.md

    `speed` is about time and memory instead. What is finished is kept and not run again; Ctrl-C leaves a checkpoint,
    and the same command goes on.
    """,
)


class Kernel(enum.StrEnum):
    rbf = "rbf"
    matern32 = "matern32"
    periodic = "periodic"


class Network(enum.StrEnum):
    ozone = "ozone"
    rainfall = "rainfall"
    argo = "argo"


Models = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="all|NAME[,NAME...]",
        help="Presets of npax.models.presets: {models}; gp, a Gaussian process fitted to each task, where there is no "
        "oracle; or all of them.",
    ),
]
Steps = Annotated[int, typer.Option(min=1, help="Training steps of each model. The papers train 100,000.")]
Seeds = Annotated[int, typer.Option(min=1, help="Seeds of each model, trained side by side.")]
Tasks = Annotated[int, typer.Option(min=2, help="Evaluation tasks, the same for all models.")]
Folder = Annotated[Path, typer.Option(help="Where checkpoints and trained weights are kept.")]
Results = Annotated[
    Path | None, typer.Option(help="Where results are kept, small files.", show_default="FOLDER/results")
]
Data = Annotated[
    Path | None,
    typer.Option(help="The file of the data, or the folder that holds it.", show_default="the folder NPAX_DATA names"),
]


def table(tasks: int = 1024) -> Callable[[Callable[..., tuple]], Callable[..., None]]:
    """Makes a command of a function that returns what its table takes: its own options, and those of all tables.

    `tasks`: how many the models are scored on, by default.
    """

    def command(function):
        def run(model, steps, seeds, tasks, folder, results, **own):
            from ..devices import one_device_per_core

            one_device_per_core()
            _bench(function.__name__, model, steps, seeds, tasks, folder, results, *function(**own))

        def option(name, annotation, default):
            return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)

        options = [
            option("model", Models, "all"),
            *(option(own.name, own.annotation, own.default) for own in inspect.signature(function).parameters.values()),
            option("steps", Steps, 1500),
            option("seeds", Seeds, 1),
            option("tasks", Tasks, tasks),
            option("folder", Folder, FOLDER),
            option("results", Results, None),
        ]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = inspect.Signature(options)
        run.__annotations__ = {o.name: o.annotation for o in options}
        return bench.command(cls=NamesInHelp)(run)

    return command


@table()
def gp1d(kernel: Annotated[Kernel, typer.Option(help="The kernel of the tasks.")] = Kernel.rbf):
    """GP-1D of TNP-KR: 3 to 50 noisy points of a function on [-2, 2]."""
    return (kernel.value,)


@table()
def gp2d():
    """GP-2D of TNP-KR: 12 to 128 noisy points of a function on a square."""
    return ()


@table()
def shift():
    """GP-1D-shift of TE-TNP: tested where it was trained, and at 0.5, 1 and 2 beside it."""
    return ()


@table()
def bimodal():
    """Models trained on GP-1D-shift, tested where all points lie in two clusters beside the origin."""
    return ()


@table()
def anp():
    """GP-1D of the attentive neural process: 3 to 100 points with little noise, amplitudes that vary."""
    return ()


@table()
def mnist(data: Data = None):
    """Image completion of TNP-KR on MNIST: 16 to 128 pixels seen of 256 that are asked for."""
    return (data,)


@table()
def celeba(data: Data = None):
    """Image completion of TNP-KR on CelebA, 32 x 32 pixels (data for non-commercial research only)."""
    return (data,)


@table()
def cifar10(data: Data = None):
    """Image completion of TNP-KR on CIFAR-10."""
    return (data,)


@table()
def tmnist(data: Data = None):
    """T-MNIST of TE-TNP: digits anywhere on a canvas of 56 x 56, up to a third of it seen."""
    return (data,)


@table()
def tcifar10(data: Data = None):
    """T-CIFAR-10 of TE-TNP: images anywhere on a canvas of 64 x 64, up to a third of it seen."""
    return (data,)


@table(tasks=256)
def kolmogorov(
    trajectories: Annotated[int, typer.Option(min=2, help="Flows to simulate, once; one in eight is for tests.")] = 72,
    flows: Annotated[Path, typer.Option(help="Where the flows are kept.")] = FOLDER,
):
    """Kolmogorov flow of TE-TNP: velocities in a block of turbulence, 1 to 500 of 4,096 nodes seen.

    The flows are simulated first, by exponax, some seconds each, and kept.
    """
    return flows, trajectories


@table(tasks=256)
def environment(data: Data = None):
    """Air temperature of TE-TNP: trained on Central Europe, tested there, west and north of it (ERA5)."""
    return (data,)


@table(tasks=256)
def stations(network: Annotated[Network, typer.Option(help="Whose observations.")] = Network.ozone, data: Data = None):
    """Real stations, some of them silent: ozone (days to come), rainfall and ocean floats (elsewhere)."""
    return network.value, data


@table()
def sir(
    lattice: Annotated[
        int,
        typer.Option(metavar="64|128|256|1024", help="Cells a side to score on, beside 64 x 64; training is there."),
    ] = 64,
    tiled: Annotated[
        bool,
        typer.Option("--tiled", help="Score in tiles of 512 observations, as many as in training; 1024 always is."),
    ] = False,
):
    """SIR of TNP-KR: an epidemic on a lattice, 3 to 12.5 % of its cells seen.

    All lattices share one training. Give few --tasks on larger ones: exact attention looks at about 800 times as many
    pairs per task on 256 x 256 as on 64 x 64, and, in tiles, at about 2,000 times as many on 1024 x 1024.
    """
    return lattice, tiled


@bench.command()
def report(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A .md file; learning curves beside it.", show_default="the terminal"),
    ] = None,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """Write all results as Markdown: tables, paired t-tests, learning curves."""
    with clear_errors():
        if output is not None:
            check_ending(output, ".md")
            check_output(output)
        found = folder / "results" if results is None else results
        text = harness.report(found, None if output is None else output.with_suffix(""))
        if output is None:
            typer.echo(text)
        else:
            write_atomically(output, text.encode())
            out.print(f"report: {output}")


def _bench(table, model, steps, seeds, tasks, folder, results, *which):
    known = [*harness.model_presets(), *harness.BASELINES]
    named(model, "model", known)
    results = folder / "results" if results is None else results
    failed = []
    try:
        with clear_errors():
            check_folder(folder, "--folder")
            check_folder(results, "--results")
            chosen = getattr(harness, table)(*which)
            wanted = named(model, "model", harness.rows(chosen), also=known)
            absent = [name for name in wanted if name in harness.BASELINES and name not in chosen.baselines]
            if absent:
                raise ValueError(f"`{absent[0]}` is no row of {chosen.title}: its references come with every run.")
            benchmark = harness.prepare(chosen, tasks, results, log=err.print)
            for i, name in enumerate(wanted, 1):
                this = harness.run_of(chosen, name, tasks, steps, seeds)
                place = f"[{i}/{len(wanted)}] {benchmark.table.title}, {name}"
                done = harness.finished(results, this)
                training = f"{steps:,} steps" if this.steps else "fitted to each task"
                err.print(f"{place}: {'finished before' if done else training}")
                try:
                    found = harness.run(
                        benchmark,
                        name,
                        steps=steps,
                        seeds=seeds,
                        folder=folder,
                        progress=err.is_terminal,
                        log=None if err.is_terminal else err.print,
                    )
                except Exception as error:  # one model's trouble (memory, say) must not cost the night of the others
                    if len(wanted) == 1:
                        raise
                    err.print(f"{name} failed: {type(error).__name__}: {error}", style="red")
                    failed.append(name)
                    continue
                for result in found:
                    out.print(_line(result))
    except KeyboardInterrupt:
        err.print(
            "\nStopped. What is finished is kept; the same command goes on from there, "
            "and from the last checkpoint of the training, if there is one yet.",
        )
        raise typer.Exit(INTERRUPTED) from None
    out.print(f"results: {results}; compare them: npax bench report --results {results}")
    if failed:
        err.print(f"failed: {', '.join(failed)}", style="red")
        raise typer.Exit(1)


def _line(result):
    gap = "" if result.gap is None else f"{result.gap:.3f} above the floor, "
    return (
        f"{result.task}: {result.model}, seed {result.seed}: NLL {result.nll:.3f} ± {result.nll_error:.3f}, "
        f"{gap}{result.seconds:,.0f} s"
    )
