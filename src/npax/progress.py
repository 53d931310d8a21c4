"""A progress bar that can be left out."""

import sys
import time

from rich import progress as rich
from rich.console import Console

FIRST, LONGEST = 10.0, 600.0
"""Seconds between lines."""


class Progress:
    """A context manager around one bar over `total`, on standard error; `shown=False` shows nothing and costs nothing.

    Where standard error is a file or a pipe, as in logs of clusters, it is a line now and then: after ten seconds, and
    then in intervals that grow to ten minutes.

    **Arguments:** `done`: how much of `total` is behind already. `note`: what stands behind the bar.
    """

    def __init__(self, label: str, total: float | int, *, shown: bool, done: int = 0, note: str = ""):
        self._bar, self._task = _bar() if shown else None, rich.TaskID(0)
        self._label, self._line, self._wait = label, time.monotonic(), FIRST
        if self._bar:
            self._task = self._bar.add_task(label, total=total, completed=done, note=note)

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.__enter__()
        return self

    def __exit__(self, *error) -> None:
        if self._bar:
            self._bar.__exit__(*error)

    def advance(self, amount: float | int, note: str = "") -> None:
        if self._bar:
            self._bar.update(self._task, advance=amount, note=note)
            if not (self._bar.console.is_terminal or self._bar.console.is_jupyter):
                self._log(self._bar.tasks[self._task], note)

    def _log(self, task, note):
        now = time.monotonic()
        if now - self._line >= self._wait and not task.finished:  # the end is told by the bar
            self._line, self._wait = now, min(2 * self._wait, LONGEST)
            print(f"{self._label} {task.percentage:.0f}% {note}".rstrip(), file=sys.stderr, flush=True)


def _bar():
    return rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.fields[note]}"),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
    )
