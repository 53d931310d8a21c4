import enum
from pathlib import Path
from typing import Annotated

import typer

from .. import bench as harness
from ..training.checkpoint import write_atomically
from ._process import clear_errors, err, fail, out

FOLDER = Path("runs/bench")

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Train all models under one budget and compare them: with published figures, and on Gaussian processes with
    the Bayes floor and an oracle.

    npax bench gp1d --kernel rbf --model tnp_d,tnp_kr_sa --steps 1500

    npax bench mnist --data DATA --model convcnp,tnp_kr_sa

    npax bench report -o tables.md

    Finished rows are kept and not run again; Ctrl-C leaves a checkpoint, and the same command goes on.
    """,
)


class Kernel(enum.StrEnum):
    rbf = "rbf"
    matern32 = "matern32"
    periodic = "periodic"


class KernelOf2D(enum.StrEnum):
    rbf = "rbf"


Models = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="all|NAME[,NAME...]",
        help=f"Presets of npax.models.presets: {', '.join(harness.model_presets())}; or all of them.",
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
    typer.Option(help="The file of images, or the folder that holds it.", show_default="the folder NPAX_DATA names"),
]


@bench.command()
def gp1d(
    model: Models = "all",
    kernel: Annotated[Kernel, typer.Option(help="The kernel of the tasks.")] = Kernel.rbf,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """GP-1D of TNP-KR: 3 to 50 noisy points of a function on [-2, 2]."""
    _bench("gp1d", model, steps, seeds, tasks, folder, results, kernel.value)


@bench.command()
def gp2d(
    model: Models = "all",
    kernel: Annotated[KernelOf2D, typer.Option(help="The kernel of the tasks.")] = KernelOf2D.rbf,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """GP-2D of TNP-KR: 12 to 128 noisy points of a function on a square."""
    _bench("gp2d", model, steps, seeds, tasks, folder, results)


@bench.command()
def shift(
    model: Models = "all",
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """GP-1D-shift of TE-TNP: tested where it was trained, and at 0.5, 1 and 2 beside it."""
    _bench("shift", model, steps, seeds, tasks, folder, results)


@bench.command()
def anp(
    model: Models = "all",
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """GP-1D of the attentive neural process: 3 to 100 points with little noise, amplitudes that vary."""
    _bench("anp", model, steps, seeds, tasks, folder, results)


@bench.command()
def mnist(
    model: Models = "all",
    data: Data = None,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """Image completion of TNP-KR on MNIST: 16 to 128 pixels seen of 256 that are asked for."""
    _bench("mnist", model, steps, seeds, tasks, folder, results, data)


@bench.command()
def celeba(
    model: Models = "all",
    data: Data = None,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """Image completion of TNP-KR on CelebA, 32 x 32 pixels (data for non-commercial research only)."""
    _bench("celeba", model, steps, seeds, tasks, folder, results, data)


@bench.command()
def cifar10(
    model: Models = "all",
    data: Data = None,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """Image completion of TNP-KR on CIFAR-10."""
    _bench("cifar10", model, steps, seeds, tasks, folder, results, data)


@bench.command()
def tmnist(
    model: Models = "all",
    data: Data = None,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """T-MNIST of TE-TNP: digits anywhere on a canvas of 56 x 56, up to a third of it seen."""
    _bench("tmnist", model, steps, seeds, tasks, folder, results, data)


@bench.command()
def tcifar10(
    model: Models = "all",
    data: Data = None,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """T-CIFAR-10 of TE-TNP: images anywhere on a canvas of 64 x 64, up to a third of it seen."""
    _bench("tcifar10", model, steps, seeds, tasks, folder, results, data)


@bench.command()
def sir(
    model: Models = "all",
    lattice: Annotated[
        int,
        typer.Option(metavar="64|128|256|1024", help="Cells a side to score on, beside 64 x 64; training is there."),
    ] = 64,
    steps: Steps = 1500,
    seeds: Seeds = 1,
    tasks: Tasks = 1024,
    folder: Folder = FOLDER,
    results: Results = None,
) -> None:
    """SIR of TNP-KR: an epidemic on a lattice, 3 to 12.5 % of its cells seen.

    All lattices share one training. Give few --tasks on larger ones: exact attention looks at about 800 times as many
    pairs per task on 256 x 256 as on 64 x 64, and, in tiles, at about 2,000 times as many on 1024 x 1024.
    """
    _bench("sir", model, steps, seeds, tasks, folder, results, lattice)


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
        if output is not None and output.suffix != ".md":
            raise ValueError(f"`--output` must end in .md, got '{output}'.")
        found = folder / "results" if results is None else results
        text = harness.report(found, None if output is None else output.with_suffix(""))
        if output is None:
            typer.echo(text)
        else:
            write_atomically(output, text.encode())
            out.print(f"report: {output}", soft_wrap=True)


def _bench(table, model, steps, seeds, tasks, folder, results, *which):
    known = list(harness.model_presets())
    wanted = known if model == "all" else [name.strip().replace("-", "_") for name in model.split(",")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        fail(f"There is no model '{unknown[0]}'; there is: all, {', '.join(known)}.")
    results = folder / "results" if results is None else results
    failed = []
    try:
        with clear_errors():
            chosen = getattr(harness, table)(*which)
            if model == "all":
                wanted = harness.rows(chosen)
            benchmark = harness.prepare(chosen, tasks, results, log=err.print)
            for i, name in enumerate(wanted, 1):
                this = harness.Run(benchmark.table.name, name, tasks, steps, seeds)
                place = f"[{i}/{len(wanted)}] {benchmark.table.title}, {name}"
                done = harness.finished(results, this)
                err.print(f"{place}: {'finished before' if done else f'{steps:,} steps'}", markup=False)
                try:
                    found = harness.run(
                        benchmark, name, steps=steps, seeds=seeds, folder=folder, progress=err.is_terminal
                    )
                except Exception as error:  # one model's trouble (memory, say) must not cost the night of the others
                    if len(wanted) == 1:
                        raise
                    err.print(f"{name} failed: {type(error).__name__}: {error}", markup=False, style="red")
                    failed.append(name)
                    continue
                for result in found:
                    out.print(_line(result), soft_wrap=True)
    except KeyboardInterrupt:
        out.print("\nStopped. What is finished is kept; the same command goes on from the last checkpoint.")
        raise typer.Exit(130) from None
    out.print(f"results: {results}; compare them: npax bench report --results {results}", soft_wrap=True)
    if failed:
        err.print(f"failed: {', '.join(failed)}", style="red")
        raise typer.Exit(1)


def _line(result):
    gap = "" if result.gap is None else f"{result.gap:.3f} above the floor, "
    return (
        f"{result.task}: {result.model}, seed {result.seed}: NLL {result.nll:.3f} ± {result.nll_error:.3f}, "
        f"{gap}{result.seconds:,.0f} s"
    )
