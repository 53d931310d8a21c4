"""Results on disk: for each run a file of JSON lines, and beside it the likelihood of every evaluation task."""

import dataclasses
import datetime
import io
import json
import platform
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np

from ..devices import cores
from ..files import write_atomically
from ..packed import DamagedFile


@dataclasses.dataclass(frozen=True)
class Run:
    """What tells one run from another. References (`bayes_floor`, `oracle`) have no steps."""

    table: str
    model: str
    tasks: int
    steps: int = 0
    seeds: int = 1

    @property
    def name(self) -> str:
        training = f".{self.steps}-steps.{self.seeds}-seeds" if self.steps else ""
        return f"{self.table}.{self.model}{training}.{self.tasks}-tasks"


@dataclasses.dataclass(frozen=True)
class Result:
    """One line: a model with one seed, scored on one task of a table. Errors are standard errors over tasks."""

    table: str
    task: str
    model: str
    seed: int
    seeds: int
    steps: int
    batch: int
    tasks: int
    parameters: int
    nll: float
    nll_error: float
    gap: float | None
    """NLL above the Bayes floor of the same tasks, where there is one."""
    gap_error: float | None
    rmse: float
    mae: float
    crps: float
    coverage: float
    """Share of the targets in the central 95 % interval; of classes in the smallest set that holds 95 %."""
    seconds: float
    """Wall-clock time of the training of all seeds, compilation included; of a reference, of its computation."""
    skipped: int
    """Training steps, of all seeds, that changed nothing because a loss or gradient was not finite."""
    curve: list[list[int | float]]
    """Training steps, and the NLL of the first evaluation tasks after them."""
    device: str
    date: str
    versions: dict[str, str]


def write(folder: Path, run: Run, results: list[Result], nll: dict[str, np.ndarray]) -> None:
    """`nll`: for each task of the table `[seeds tasks]`. The lines are written last: where they are, all is."""
    content = io.BytesIO()
    np.savez(content, **{task: values.astype(np.float32) for task, values in nll.items()})  # pyright: ignore
    write_atomically(folder / f"{run.name}.npz", content.getvalue())
    lines = [json.dumps(dataclasses.asdict(result)) + "\n" for result in results]
    write_atomically(folder / f"{run.name}.jsonl", "".join(lines).encode())


def finished(folder: Path, run: Run) -> bool:
    return (folder / f"{run.name}.jsonl").exists()


def read(path: Path) -> tuple[list[Result], dict[str, np.ndarray]]:
    """The lines of one file, and the likelihoods `[seeds tasks]` beside it.

    **Raises** `DamagedFile` where a line is not a result or the likelihoods do not fit the lines.
    """
    results = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        try:
            results.append(Result(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise DamagedFile(f"{path}, line {number} is damaged or not a result: {error}. {_remedy(path)}") from error
    arrays = path.with_suffix(".npz")
    try:
        nll = dict(np.load(io.BytesIO(arrays.read_bytes())))
        shapes = {result.task: (result.seeds, result.tasks) for result in results}
        if {task: values.shape for task, values in nll.items()} != shapes:
            raise ValueError(f"its arrays should be {shapes}")
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedFile(f"{arrays} is missing or damaged: {error}. {_remedy(path)}") from error
    return results, nll


def read_all(folder: Path) -> list[tuple[list[Result], dict[str, np.ndarray]]]:
    """All that is in a folder. **Raises** `FileNotFoundError` where there is nothing."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise FileNotFoundError(f"There are no results in '{folder}': npax bench TABLE makes them.")
    return [read(path) for path in paths]


def _remedy(path):
    return f"Delete {path.name}; the command that made it makes it anew (a finished training is not repeated)."


def circumstances() -> dict:
    """Device, date and versions, as a result has them."""
    return {
        "device": device(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": {
            "python": platform.python_version(),
            "npax": version("npax") + commit(Path(__file__)),
            **{name: version(name) for name in ("jax", "equinox")},
        },
    }


def commit(file: Path) -> str:
    """`+` and the commit of the working tree that holds a file, and whether it was changed since; nothing where git
    does not know the file."""
    git = ["git", "-C", str(file.parent)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", file.name], capture_output=True, check=True)
        found = subprocess.run(
            [*git, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return "+" + found.stdout.decode().strip()


def device() -> str:
    """The accelerators, or the processor and the number of cores that this process may use."""
    found = jax.devices()
    if found[0].platform != "cpu":
        return found[0].device_kind if len(found) == 1 else f"{len(found)} x {found[0].device_kind}"
    return f"CPU, {_processor()}, {cores()} cores"


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
