"""The `npax` command: thin over the library."""

import inspect
import sys
from typing import Annotated

import typer

from ._process import INTERRUPTED, ask_for_large_pages, leave_at_once, prepare
from .average import average
from .bench import bench
from .demo import demo
from .fill import fill
from .models import models
from .names import NamesInHelp
from .paragraphs import in_paragraphs
from .predict import predict
from .several import SeveralValues
from .speed import speed
from .train import train

app = typer.Typer(
    name="npax",
    help="Neural processes: scattered observations in, predictions with calibrated uncertainty out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command(cls=SeveralValues)(predict)
app.command(cls=SeveralValues)(average)
app.command(cls=SeveralValues)(fill)
app.command(cls=NamesInHelp)(train)
app.command()(models)
app.add_typer(bench, name="bench")
bench.command(cls=NamesInHelp)(speed)
bench.info.help = in_paragraphs(bench.info.help or "")
for _command in (*app.registered_commands, *bench.registered_commands):
    _command.help = in_paragraphs(_command.help or inspect.getdoc(_command.callback) or "")


def _version(asked: bool) -> bool:
    if asked:
        from importlib.metadata import version

        typer.echo(f"npax {version('npax')}")
        raise typer.Exit
    return asked


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point of the `npax` command."""
    if sys.argv[1:2] in (["train"], ["bench"]):
        ask_for_large_pages()
    prepare()
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            leave_at_once(INTERRUPTED)
        raise
