"""What every result file says: command, device, versions, date."""

import datetime
import json
import os
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

import jax

RESULTS = Path(__file__).parent / "results"


def circumstances() -> dict:
    device = jax.devices()[0]
    return {
        "command": shlex.join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "device": device.device_kind
        if device.platform != "cpu"
        else f"CPU, {cpu()}, {len(os.sched_getaffinity(0))} cores",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("npax", "jax", "equinox")},
        },
    }


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def write_json(name: str, content: dict) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    partial = path.with_suffix(".json.partial")
    partial.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(partial, path)
    return path


def write_markdown(name: str, title: str, body: str, about: dict) -> Path:
    RESULTS.mkdir(exist_ok=True)
    versions = ", ".join(f"{package} {number}" for package, number in about["versions"].items())
    head = f"# {title}\n\n`{about['command']}`\n\n{about['date']}; {about['device']}; {versions}.\n\n"
    path = RESULTS / f"{name}.md"
    path.write_text(head + body.rstrip() + "\n")
    return path


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"
