"""A progress bar that can be left out."""

from rich import progress as rich
from rich.console import Console


class Progress:
    """A context manager around one bar over `total`; `shown=False` shows nothing and costs nothing."""

    def __init__(self, label: str, total: float | int, *, shown: bool):
        self._bar, self._task = _bar() if shown else None, rich.TaskID(0)
        if self._bar:
            self._task = self._bar.add_task(label, total=total)

    def __enter__(self) -> "Progress":
        if self._bar:
            self._bar.__enter__()
        return self

    def __exit__(self, *error) -> None:
        if self._bar:
            self._bar.__exit__(*error)

    def advance(self, amount: float | int) -> None:
        if self._bar:
            self._bar.advance(self._task, amount)


def _bar():
    return rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
    )
