"""What the command sets up in its own process, and how it reports errors; the library itself does neither."""

import _thread
import contextlib
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ..compiled import keep_compiled_programs
from ..files import is_remote

PIPED = 1000
"""Characters of a line of a table where there is no terminal to break it."""


def _console(stderr):
    """Prints what it is told: no markup, no emoji, no lines broken."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is None or stream.isatty() else PIPED
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True, width=width)


out, err = _console(False), _console(True)

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
LARGE_PAGES = "glibc.malloc.hugetlb=1"
PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def prepare() -> None:
    """Keeps compiled programs between runs, shows warnings as notes of one line, and loses no Ctrl-C; what a scheduler
    sends to end a process is taken for that."""
    keep_compiled_programs()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = _again
    logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)  # says which devices there are not
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", category=UserWarning, module="npax")
    warnings.showwarning = _note


def ask_for_large_pages() -> None:
    """Starts this process anew with an allocator that asks Linux for memory in pages of 2 MB, unless it does already.

    The activations of a training step are hundreds of megabytes: found through pages of 4 KB they take TNP-KR a
    quarter longer. glibc reads this setting as a process starts, and at no other time.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc.hugetlb" in tunables or not sys.executable or not _on_request(PAGES):
        return
    os.environ["GLIBC_TUNABLES"] = f"{tunables}:{LARGE_PAGES}" if tunables else LARGE_PAGES
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _on_request(setting):
    """Whether Linux gives large pages to those who ask, and to no others."""
    try:
        return "[madvise]" in setting.read_text()
    except OSError:
        return False


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turns what the user can mend (values, files, missing extras) into one message and exit code 2."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        fail(str(error), error)


def leave_at_once(code: int) -> NoReturn:
    """Ends the process although XLA may still compile on another thread, which Ctrl-C does not stop: an orderly end
    frees the devices that the program is for, and crashes (jaxlib 0.10)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def check_output(path: Path, *inputs: Path | None) -> None:
    """Makes the folder of a file that is to be written. **Raises** `OSError` where that cannot be, where a folder has
    that name (those of Zarr are no files), or where the file is one of `inputs`: before the work, not after it.
    `ValueError` for an address, or a `~` that the shell has left."""
    if is_remote(path) or str(path).startswith("~"):
        raise ValueError(f"'{path}' must be the path of a file on this machine, written out.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"'{path}' cannot be written, for there can be no folder '{path.parent}': {error}") from error
    if not _takes_files(path.parent):
        raise PermissionError(f"'{path}' cannot be written: the folder '{path.parent}' is read-only.")
    if path.is_dir() and path.suffix.lower() != ".zarr":
        raise IsADirectoryError(f"'{path}' is a folder: name a file.")
    if any(file is not None and path.resolve() == file.resolve() for file in inputs):
        raise FileExistsError(f"'{path}' is what is read: write to another file.")


def check_ending(output: Path, ending: str) -> None:
    """**Raises** `ValueError` for the name of a file of another format; `.NC` is `.nc`."""
    if output.suffix.lower() != ending:
        raise ValueError(f"`--output` must end in {ending}, got '{output}'.")


def check_folder(path: Path, option: str) -> None:
    """**Raises** `OSError` where a folder cannot be made and written to: before the work."""
    rule = f"`{option}` must be a folder that can be written to"
    there = next(part for part in (path, *path.absolute().parents) if part.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{rule}, and '{there}' is a file.")
    if not _takes_files(there):
        raise PermissionError(f"{rule}, and '{there}' is read-only.")


def _takes_files(folder):
    """By trial: permissions do not tell of file systems that take none."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def fail(message: str, cause: BaseException | None = None) -> NoReturn:
    """Prints what is wrong and leaves with exit code 2."""
    err.print(Text.assemble(("error:", "bold red"), f" {_as_options(message)}"))
    raise typer.Exit(2) from cause


def named(text: str, what: str, known: Collection[str], also: Collection[str] = ()) -> list[str]:
    """The names in a list with commas, each once; "all" is all that are known."""
    names = [name.strip().replace("-", "_") for name in text.split(",")]
    wanted = list(dict.fromkeys(each for name in names for each in (known if name == "all" else [name])))
    unknown = [name for name in wanted if name not in (*known, *also)]
    if unknown:
        fail(f"There is no {what} '{unknown[0]}'; there is: {', '.join(dict.fromkeys(['all', *known, *also]))}.")
    return wanted


def _note(message, category, filename, lineno, file=None, line=None):
    err.print(Text.assemble(("note:", "yellow"), f" {_as_options(str(message))}"))


def _as_options(message):
    """What the library calls its arguments, as those of the command: --coords latlon."""
    return re.sub(r"""`(coords|strategy|finetune)="?(\w+)"?`""", r"--\1 \2", message)


def _again(unraisable):
    """Ctrl-C where Python drops what is raised (JAX has a callback that garbage collection calls, most often while it
    compiles) comes once more, when that is over."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)
