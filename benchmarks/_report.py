"""What every result file says: command, device, versions, date."""

import json
import os
import shlex
import sys
from pathlib import Path

from npax.bench import results
from npax.bench.report import table as table

RESULTS = Path(__file__).parent / "results"


def circumstances() -> dict:
    command = shlex.join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    return {"command": command, **results.circumstances()}


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
