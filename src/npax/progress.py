"""A progress bar that can be left out."""

from rich import progress as rich
from rich.console import Console


class Progress:
    """A context manager around one bar over `total`, on standard error; `shown=False` shows nothing and costs nothing.

    **Arguments:** `done`: how much of `total` is behind already. `note`: what stands behind the bar.
    """

    def __init__(self, label: str, total: float | int, *, shown: bool, done: int = 0, note: str = ""):
        self._bar, self._task = _bar() if shown else None, rich.TaskID(0)
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
