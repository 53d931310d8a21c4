"""A progress bar that can be left out."""

from rich import progress as rich


class Progress:
    """A context manager around one bar over `total`; `shown=False` shows nothing and costs nothing."""

    def __init__(self, label: str, total: float | int, *, shown: bool):
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TaskProgressColumn(),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
        )
        self._progress = rich.Progress(*columns, disable=not shown)
        self._task = self._progress.add_task(label, total=total)

    def __enter__(self) -> "Progress":
        self._progress.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._progress.__exit__(*error)

    def advance(self, amount: float | int) -> None:
        self._progress.advance(self._task, amount)
