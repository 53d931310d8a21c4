"""Every model at its size in KR2's comparison: milliseconds per training step and per prediction, beside dl4bi's.

    python benchmarks/model_speed.py --peer-python peer/bin/python

For one model after another, ours and the peer's of the same name take turns in processes of their own, so that a slow
minute of the machine hurts both. dl4bi's CNP, NP, CANP and BTNP are made as large as ours, its others are as shipped:
the table says how large. Ours have each core as a device, as in `npax train` (`npax.devices.one_device_per_core`);
dl4bi leaves it to XLA to share each operation among cores. Latent models predict with 16 draws. Needs an otherwise
idle machine and, for all models, most of an hour. Writes `results/model_speed.md` and `.json`, anew after each model.
"""

import argparse
import statistics
import sys
import tempfile

from _report import circumstances, table, write_json, write_markdown
from dl4bi_side_by_side import Worker

from npax.bench import model_presets

PEERS = {
    "cnp": "CNP",
    "np": "NP",
    "canp": "CANP",
    "anp": "ANP",
    "tnp_d": "TNPD",
    "te_tnp": "TETNP",
    "tnp_kr_full": "BTNP",
    "tnp_kr_sa": "BTNP",
    "tnp_kr_perf": "BSATNP, PERF",
    "tnp_kr_dka": "BSATNP, DKA",
}
"""dl4bi's models that stand beside ours; its scan attention is made for GPUs, so BTNP stands for TNP-KR: SA. Its
ConvCNP is left out: on 2 CPU cores the first five training steps had not ended after 15 minutes."""


def main() -> None:
    options = _options()
    about = {**circumstances(), "rounds": options.rounds, "batch": options.batch}
    results = []
    with tempfile.TemporaryDirectory() as cache:
        for name in options.model or model_presets():
            results.append(
                {"model": name, "peer": PEERS.get(name)} | {c: _time(name, c, options, cache) for c in CASES}
            )
            write_json("model_speed", {**about, "results": results})
            write_markdown("model_speed", "Speed of every model", _text(results, options), about)
            print(_line(results[-1]), flush=True)


CASES = {"train": 5, "tasks": 1}
"""Steps per call."""


def _time(name, case, options, cache):
    """Seconds per step (`train`) or call (`tasks`) by round, ours and the peer's, and their sizes."""
    spec = {"case": case, "batch": options.batch, "steps": CASES[case]}
    contenders = [("npax", sys.executable, "_side_npax.py", {**spec, "variant": name})]
    if name in PEERS and options.peer_python:
        peer = {**spec, "model": PEERS[name], "variant": "same widths"}
        contenders.append(("dl4bi", options.peer_python, "_side_dl4bi.py", peer))
    workers = []
    try:
        for side, python, script, wanted in contenders:
            workers.append(Worker(f"{side} {name}", python, script, wanted, cache))
        for _ in range(options.rounds):
            for worker in workers:
                worker.round()
    finally:
        for worker in workers:
            worker.stop()
    return {
        side: {"seconds": worker.seconds, "parameters": worker.about["parameters"]}
        for (side, *_), worker in zip(contenders, workers, strict=True)
    }


def _text(results, options):
    header = ["", "parameters", "ms per training step", "ms per prediction", "dl4bi", "its parameters"]
    header += ["its training step", "its prediction", "times faster in training", "in prediction"]
    rows = [[cell for _, cell in _cells(result)] for result in results]
    return (
        f"Training steps of {options.batch} tasks of GP-1D (50 context slots, 150 targets, drawn in the step; Yogi; "
        f"each model's own objective) and predictions for {options.batch} such tasks at once; ours with each core as a "
        "device, dl4bi's with operations shared among cores. Median over "
        f"{options.rounds} rounds (least - most); ratios are of the same round.\n\n" + table(header, rows)
    )


def _cells(result):
    ours, theirs = ({case: result[case].get(side) for case in CASES} for side in ("npax", "dl4bi"))
    yield "model", f"`{result['model']}`"
    yield "parameters", f"{ours['train']['parameters']:,}"
    for case in CASES:
        yield case, _spread([1e3 * s for s in ours[case]["seconds"]])
    if theirs["train"] is None:
        yield from (("", "") for _ in range(6))
        return
    yield "peer", result["peer"]
    yield "its parameters", f"{theirs['train']['parameters']:,}"
    for case in CASES:
        yield case, _spread([1e3 * s for s in theirs[case]["seconds"]])
    for case in CASES:
        pairs = zip(theirs[case]["seconds"], ours[case]["seconds"], strict=True)
        yield f"{case}, times faster", _spread([a / b for a, b in pairs])


def _line(result):
    return ", ".join(f"{name} {cell}" for name, cell in _cells(result) if cell)


def _spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} - {max(values):.3g})"


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="an interpreter that can import dl4bi; without it: npax alone")
    parser.add_argument("--model", nargs="+", choices=list(model_presets()), help="presets (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    return parser.parse_args()


if __name__ == "__main__":
    main()
