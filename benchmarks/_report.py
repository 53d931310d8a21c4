"""What every result file says: command, device, versions, date."""

import json
import shlex
import sys
from pathlib import Path

from npax.bench import results
from npax.bench.report import table as table
from npax.files import write_atomically

RESULTS = Path(__file__).parent / "results"


def circumstances() -> dict:
    command = shlex.join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    return {"command": command, **results.circumstances()}


def write_json(name: str, content: dict) -> Path:
    path = RESULTS / f"{name}.json"
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
    return path


def write_markdown(name: str, title: str, body: str, about: dict) -> Path:
    versions = ", ".join(f"{package} {number}" for package, number in about["versions"].items())
    head = f"# {title}\n\n`{about['command']}`\n\n{about['date']}; {about['device']}; {versions}.\n\n"
    path = RESULTS / f"{name}.md"
    write_atomically(path, (head + body.rstrip() + "\n").encode())
    return path
