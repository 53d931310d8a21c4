import os
from pathlib import Path
from typing import Annotated

import typer

from .. import bench as harness
from ..files import write_atomically
from ._process import INTERRUPTED, check_ending, check_folder, check_output, clear_errors, err, fail, named, out

FOLDER = Path("runs/bench/speed")
MEMORY_SHARE = 0.6


def _default_memory():
    """Gigabytes: a share of the machine's memory, in whole ones."""
    try:
        return max(1, round(MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30))
    except (AttributeError, ValueError, OSError):  # systems without sysconf
        return 8


def speed(
    row: Annotated[
        str,
        typer.Option(
            metavar="all|NAME[,NAME...]",
            help="Rows: {rows}; exact, the shipped model without tiles; or any preset of npax.models.presets.",
        ),
    ] = "all",
    table: Annotated[str, typer.Option(metavar="all|NAME[,NAME...]", help="Tables: {tables}.")] = "all",
    largest: Annotated[int, typer.Option(min=1, help="Leave out sizes (context or targets) beyond this one.")] = 2**20,
    seconds: Annotated[float, typer.Option(min=1.0, help="Time limit of each figure's process.")] = 600.0,
    memory: Annotated[
        float | None,
        typer.Option(
            min=0.5, help="Memory limit of each figure's process, GB (Linux).", show_default="60 % of the machine's"
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where timings are kept, a small file for each figure.")] = FOLDER,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A .md file.", show_default="the terminal")
    ] = None,
) -> None:
    """Time and memory of predictions, for 1 to 1,000,000 context points and targets and for images.

    The tables of the papers of TNP-KR, beside their figures. Each figure is of a process of its own, under limits: a
    size that would take too long or too much memory is reported as such. Figures that are there already are not
    measured again; those that met a limit are, under a larger one. Ctrl-C and the same command again: it goes on.
    Needs an otherwise idle machine.
    """
    from ..bench import speed as timings

    known = [*harness.ROWS, harness.TILED]
    wanted = named(row, "row", known, also=[harness.EXACT, *harness.model_presets()])
    tables = named(table, "table", [*timings.SIZES])
    if output is not None:
        with clear_errors():
            check_ending(output, ".md")
            check_output(output)
    with clear_errors():
        check_folder(folder, "--folder")
    limits = {"seconds": seconds, "gigabytes": memory or _default_memory()}
    todo = list(harness.cells(wanted, largest, tables))
    if not todo and "images" not in tables:
        alone = next(harness.cells(wanted), None)
        if alone is not None and not any(harness.cells(wanted, tables=tables)):
            fail(f"`--row` {row} is in the table of images alone, not in {', '.join(tables)}: add `--table images`.")
    if not todo:
        smallest = min(max(size) for name in tables for size in timings.SIZES[name])
        fail(f"`--largest` {largest} leaves out every size of {', '.join(tables)}: the smallest is {smallest}.")
    try:
        with clear_errors():
            circumstances = timings.about()
            place = timings.device_folder(folder, circumstances)
            for i, cell in enumerate(todo, 1):
                found = harness.measured(cell, place, **limits) or harness.measure(cell, place, circumstances, **limits)
                err.print(f"[{i}/{len(todo)}] {timings.line(found)}")
            text = harness.speed_report(folder)
            if output is None:
                typer.echo(text)
            else:
                write_atomically(output, text.encode())
                out.print(f"report: {output}")
    except KeyboardInterrupt:
        err.print("\nStopped. What is measured is kept; the same command goes on with the rest.")
        raise typer.Exit(INTERRUPTED) from None
