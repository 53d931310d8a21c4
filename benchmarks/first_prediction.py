"""How long a user waits for a map: `npax predict` with 200 observations, in new processes.

    python benchmarks/first_prediction.py

The first process of a pair finds an empty compilation cache, as on a new machine; the second finds what the first left.
Writes `results/first_prediction.md` and `.json`. Needs an otherwise idle machine.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import circumstances, table, write_json, write_markdown


def main() -> None:
    options = _options()
    first, second = zip(*(_pair() for _ in range(options.rounds)), strict=True)
    about = {**circumstances(), "rounds": options.rounds}
    rows = [
        [
            name,
            *(f"{statistics.median(each):.1f} ({min(each):.1f} - {max(each):.1f})" for each in zip(*runs, strict=True)),
        ]
        for name, runs in {"first ever": first, "later": second}.items()
    ]
    text = (
        "`npax predict floats.csv --x lon lat --y temp --coords latlon --resolution 5 -o map.nc` with 200 made-up "
        "observations between 60 S and 60 N; seconds of a new process, start to end; median (least - most).\n\n"
        + table(["", "wall", "CPU"], rows)
    )
    write_json("first_prediction", {**about, "first": first, "second": second})
    print(write_markdown("first_prediction", "The first prediction", text, about))
    print(text)


def _pair():
    """(wall, CPU) seconds of a process that compiles, and of one that finds it compiled."""
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        lon, lat = rng.uniform(-180, 180, 200), rng.uniform(-60, 60, 200)
        rows = np.column_stack([lon, lat, 20 * np.cos(np.radians(lat)) + rng.normal(0, 0.5, 200)])
        np.savetxt(Path(folder) / "floats.csv", rows, delimiter=",", header="lon,lat,temp", comments="", fmt="%.4f")
        return _run(folder), _run(folder)


def _run(folder):
    command = [Path(sys.executable).with_name("npax"), "predict", "floats.csv", "--x", "lon", "lat", "--y", "temp"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, "--coords", "latlon", "--resolution", "5", "-o", "map.nc"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        | {"XDG_CACHE_HOME": folder},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, cpu


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="pairs of processes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
