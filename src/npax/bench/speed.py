"""Timing tables: microseconds per sample over context and target sizes, each in a process of its own, under limits."""

import contextlib
import dataclasses
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..files import write_atomically
from ..packed import DamagedFile
from .published import PUBLISHED_SPEED, SPEED_SOURCES
from .report import table as markdown

ROWS = ("tnp_d_masked", "tnp_kr_sa", "tnp_kr_perf", "tnp_kr_dka")
"""TNP-D as published, all tokens in one masked self-attention, O((nc + nt)²); and three presets of TNP-KR."""
TILED = "tiled"
"""The shipped model in tiles (`npax.inference.Tiled`), in the table of images."""
EXACT = "exact"
"""The shipped model with every target seeing all observations: where it is asked for, in the table of images."""
POWERS = tuple(10**i for i in range(7))
IMAGES = {128: (1270, 4096), 256: (5079, 65_536), 1024: (100_000, 1_048_576)}
"""Context and target pixels of an image by its side: context of the middle of KR2's range (3 to 12.5 %), a quarter or
all of the pixels as targets; 100 K context points in the largest."""
POLL = 0.05
"""Seconds between two looks at a process."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure of a table: a row (a model) with `nc` context points and `nt` targets in the plane."""

    table: str
    row: str
    nc: int
    nt: int

    @property
    def name(self) -> str:
        return f"{self.table}.{self.row}.{self.nc}.{self.nt}"


@dataclasses.dataclass(frozen=True)
class Timing:
    """What became of a cell.

    `outcome`: `"ok"`, or what ended it: `"time"` or `"memory"`, its limits (`limit_seconds` for the whole process,
    `limit_gb` of resident memory; an accelerator's own memory is a limit too), or `"error"` with its `message`.
    `seconds`: of each call, compiled before. `peak_gb`: of the accelerator, or resident memory of the process.
    """

    table: str
    row: str
    nc: int
    nt: int
    outcome: str
    seconds: list[float]
    peak_gb: float | int
    limit_seconds: float | int
    limit_gb: float | int
    message: str
    device: str
    date: str
    versions: dict[str, str]


SIZES = {
    "targets": [(100, n) for n in POWERS],
    "contexts": [(n, 100) for n in POWERS],
    "images": list(IMAGES.values()),
}
"""Context and target points of each table."""


def cells(
    rows: Sequence[str] = (*ROWS, TILED), largest: int = 2**20, tables: Sequence[str] = tuple(SIZES)
) -> Iterator[Cell]:
    """Of these tables, those whose context and targets are not larger than `largest`, small ones first."""
    for name in tables:
        for nc, nt in SIZES[name]:
            for row in rows:
                if max(nc, nt) <= largest and (row not in (TILED, EXACT) or name == "images"):
                    yield Cell(name, row, nc, nt)


def measured(cell: Cell, folder: Path, seconds: float | int, gigabytes: float | int) -> Timing | None:
    """The timing of a cell in `folder`, if it is there: measured, or ended by limits not below these."""
    path = folder / f"{cell.name}.json"
    if not path.exists():
        return None
    found = read(path)
    limits = {"ok": True, "time": found.limit_seconds >= seconds, "memory": found.limit_gb >= gigabytes}
    return found if limits.get(found.outcome, False) else None


def measure(
    cell: Cell,
    folder: Path,
    circumstances: dict,
    *,
    seconds: float | int,
    gigabytes: float | int,
    command: Sequence[str] = (sys.executable, "-m", "npax.bench.speed_cell"),
    stdin: str = "",
) -> Timing:
    """Runs `command`, with the cell as JSON for its last argument, under limits; writes and gives its timing."""
    found = limited([*command, json.dumps(dataclasses.asdict(cell))], seconds, gigabytes, stdin)
    limits = {"limit_seconds": seconds, "limit_gb": gigabytes}
    timing = Timing(**dataclasses.asdict(cell), **{**found, **limits, **circumstances})
    write_atomically(folder / f"{cell.name}.json", (json.dumps(dataclasses.asdict(timing), indent=2) + "\n").encode())
    return timing


def about() -> dict:
    """Device, date and versions, as another process sees them: this one leaves accelerators to those it starts."""
    code = "import json; from npax.bench.results import circumstances; print(json.dumps(circumstances()))"
    out = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(out.splitlines()[-1])


def device_folder(folder: Path, circumstances: dict) -> Path:
    """Each device's timings have a folder of their own."""
    return folder / re.sub(r"[^a-z0-9]+", "-", circumstances["device"].lower()).strip("-")


def limited(command: Sequence[str], seconds: float | int, gigabytes: float | int, stdin: str = "") -> dict:
    """Runs a command under limits: `outcome`, `seconds`, `peak_gb`, `message` as `Timing` has them.

    The command prints JSON lines with `seconds` (a number or a list) and `peak_gb`; the last word counts for memory.
    Memory is watched where the system has `/proc` (Linux).
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=errors, text=True, env=_anew())
        ended, peak = "", 0.0
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin:  # if it ended before: its status says why
                process.stdin.write(stdin)
            started = time.monotonic()
            while process.poll() is None and not ended:
                time.sleep(POLL)
                now = _resident_gb(process.pid)
                peak = max(peak, now)  # the child's own word is exact; this one is for those that do not end well
                if now > gigabytes:
                    ended = "memory"
                elif time.monotonic() - started > seconds:
                    ended = "time"
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        out.seek(0)
        errors.seek(0)
        return _outcome(ended, process.returncode, out.read(), errors.read(), peak)


def _anew():
    """The environment of a process that compiles what it runs: a program from a cache takes less memory to get."""
    return {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "0"}


def _outcome(ended, status, out, errors, peak):
    if ended:
        return {"outcome": ended, "seconds": [], "peak_gb": peak, "message": ""}
    if status:
        words = ("RESOURCE_EXHAUSTED", "Out of memory", "MemoryError", "bad_alloc")
        memory = status == -9 or any(word in errors for word in words)  # -9: the system's own limit
        message = next((line for line in reversed(errors.splitlines()) if line.strip()), "")[:300]
        return {"outcome": "memory" if memory else "error", "seconds": [], "peak_gb": peak, "message": message}
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if not lines:
        return {"outcome": "error", "seconds": [], "peak_gb": peak, "message": "It printed no timing."}
    found = [line["seconds"] for line in lines if "seconds" in line]
    seconds = [s for each in found for s in (each if isinstance(each, list) else [each])]
    return {"outcome": "ok", "seconds": seconds, "peak_gb": lines[-1]["peak_gb"], "message": ""}


def _resident_gb(pid):
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def read(path: Path) -> Timing:
    """**Raises** `DamagedFile` for what is no timing."""
    try:
        return Timing(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise DamagedFile(f"{path} is damaged or not a timing: {error}. Delete it; it is measured anew.") from error


def speed_report(folder: Path) -> str:
    """All timings in a folder and the folders in it as Markdown: a section for each device, beside the published ones.

    **Raises** `FileNotFoundError` where there are none.
    """
    timings = [read(path) for path in sorted(folder.rglob("*.json"))]
    if not timings:
        raise FileNotFoundError(f"There are no timings in '{folder}': npax bench speed makes them.")
    text = f"# Timing tables\n\n{_LEGEND}"
    for device in sorted({timing.device for timing in timings}):
        here = [timing for timing in timings if timing.device == device]
        versions = "; ".join(sorted({_versions(timing) for timing in here}))
        dates = sorted(timing.date for timing in here)
        text += f"\n## {device}\n\n{dates[0]} to {dates[-1]}; {versions}.\n"
        for name, title in _TITLES.items():
            found = [timing for timing in here if timing.table == name]
            if found:
                text += f"\n### {title}\n\n{SPEED_SOURCES[name]}\n\n{_table(found, name)}"
    return text


def line(timing: Timing) -> str:
    """One timing in words."""
    scale = 1e3 if timing.table == "images" else 1e6
    words = _words(timing, scale).replace("*", "")
    unit = {1e3: " ms", 1e6: " µs"}[scale] if timing.outcome == "ok" else ""
    place = f"{timing.table}, {timing.nc:,} context, {timing.nt:,} targets: {timing.row}: "
    return place + words.replace(";", f"{unit};") + (f" ({timing.message})" if timing.message else "")


def _versions(timing):
    return ", ".join(f"{name} {number}" for name, number in timing.versions.items())


_TITLES = {
    "targets": "Targets, with 100 context points",
    "contexts": "Context points, with 100 targets",
    "images": "Images",
}
_LEGEND = """Time of one prediction of one task (no batch) with points in the plane, compiled before, median over calls;
peak memory of the accelerator, or resident memory of the process with all of Python. Every figure is of a process of
its own; **time** and **memory** are the limits that ended one, no figure is extrapolated. `tnp_d_masked`: TNP-D as
published, all tokens in one masked self-attention; `tnp_kr_*`: the presets in `npax.inference.Exact`, the context
conditioned once, targets in chunks. `tiled`: the shipped model in tiles of 128 observations; `exact`: the same, every
target from all observations. In brackets: published, on one NVIDIA RTX 4090 (KR1) or GPU of 24 GB (KR2).
"""


def _table(timings, name):
    unit, scale = ("ms", 1e3) if name == "images" else ("µs", 1e6)
    known = {row: i for i, row in enumerate((*ROWS, TILED, EXACT))}
    rows = sorted({timing.row for timing in timings}, key=lambda row: (known.get(row, len(known)), row))
    found = {(timing.nc, timing.nt, timing.row): timing for timing in timings}
    lines = []
    for nc, nt in sorted({(timing.nc, timing.nt) for timing in timings}):
        published = PUBLISHED_SPEED[name].get((nc, nt), {})
        lines.append([f"{nc:,}", f"{nt:,}"])
        for row in rows:
            own = _words(found[nc, nt, row], scale) if (nc, nt, row) in found else ""
            other = f" ({published[row]})" if row in published else ""
            lines[-1].append(own + other)
    return markdown(["context", "targets", *(f"{row}, {unit}" for row in rows)], lines)


def _words(timing, scale):
    match timing.outcome:
        case "ok":
            middle = statistics.median(timing.seconds) * scale
            figure = f"{middle:,.0f}" if middle >= 100 else f"{middle:.3g}"
            return f"{figure}; {timing.peak_gb:.2f} GB"
        case "time":
            return f"**time** > {timing.limit_seconds:,.0f} s"
        case "memory":
            limit = timing.limit_gb if timing.peak_gb > timing.limit_gb else None
            return "**memory**" + (f" > {limit:.3g} GB" if limit else "")
    return "**error**"
