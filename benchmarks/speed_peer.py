"""dl4bi's BSATNP in the timing tables of `npax bench speed`: a row of its own, in the same folder of results.

    python -m venv peer && peer/bin/pip install "dl4bi[cpu]"
    npax bench speed --largest 10000
    python benchmarks/speed_peer.py --peer-python peer/bin/python --largest 10000
    npax bench speed --largest 10000 -o speed.md

Each figure is of a process of its own under the same limits: one call that compiles, then `--rounds` that are timed.
Needs an otherwise idle machine.
"""

import argparse
from pathlib import Path

from npax.bench import cells, measure, measured
from npax.bench.speed import about, device_folder, line

ROW = "dl4bi_bsatnp"


def main() -> None:
    options = _options()
    limits = {"seconds": options.seconds, "gigabytes": options.memory}
    circumstances = about()
    place = device_folder(options.folder, circumstances)
    todo = list(cells([ROW], options.largest))
    for i, cell in enumerate(todo, 1):
        found = measured(cell, place, **limits) or measure(
            cell, place, circumstances, **limits, command=_command(options), stdin="\n" * options.rounds
        )
        print(f"[{i}/{len(todo)}] {line(found)}", flush=True)


def _command(options):
    """The side of the peer of `dl4bi_side_by_side.py`, told what it needs beside the cell."""
    code = (
        "import json, runpy, sys; spec = json.loads(sys.argv[1]); "
        'spec |= {"case": "predict", "variant": "as shipped", "steps": 1}; '
        f"sys.path.insert(0, {str(Path(__file__).parent)!r}); "
        'sys.argv = ["_side_dl4bi.py", json.dumps(spec)]; '
        f'runpy.run_path({str(Path(__file__).parent / "_side_dl4bi.py")!r}, run_name="__main__")'
    )
    return [options.peer_python, "-c", code]


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", required=True, help="an interpreter that can import dl4bi")
    parser.add_argument("--largest", type=int, default=2**20, help="leave out sizes beyond this one")
    parser.add_argument("--seconds", type=float, default=600, help="time limit of each figure's process")
    parser.add_argument("--memory", type=float, default=14, help="its memory limit, GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("runs/bench/speed"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
