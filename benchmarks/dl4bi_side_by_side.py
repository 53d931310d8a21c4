"""TNP-KR: SA of npax beside dl4bi's BTNP and BSATNP, on this machine, in one run.

    python -m venv peer && peer/bin/pip install "dl4bi[cpu]"
    python benchmarks/dl4bi_side_by_side.py --peer-python peer/bin/python

Each contender is a process of its own that compiles, warms up and waits; then all take turns, round after round, so
that a slow minute of the machine hurts all alike. Ratios are of the same round. Needs an otherwise idle machine.
Writes `results/dl4bi_train.md` and `results/dl4bi_predict.md`, each with its `.json`; `--only` runs one of them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import circumstances, table, write_json, write_markdown

from npax.cli._process import LARGE_PAGES

HERE = Path(__file__).parent
NPAX = {"train": ["tisa", "rotary + geometric"], "predict": ["tisa", "geometric", "rotary + geometric"]}
PEER = {"train": ["as shipped", "same widths"], "predict": ["as shipped"]}
PEER_MODEL = {"train": "BTNP", "predict": "BSATNP"}


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as cache:
        ceilings = _ceilings(cache)
        print(f"ceilings: {_words(ceilings)}", flush=True)
        if "train" in options.only:
            spec = {"case": "train", "batch": options.batch, "steps": options.train_steps}
            title = f"Training step: batch {options.batch}, 50 context slots, 150 targets, tasks drawn in the step"
            write("dl4bi_train", [side_by_side(title, spec, options, cache)], ceilings, options)
        if "predict" in options.only:
            specs = [{"case": "predict", "nc": size, "nt": size, "steps": 1} for size in options.sizes]
            title = "Inference: {0:,} context and {0:,} target points in two dimensions"
            results = [side_by_side(title.format(spec["nc"]), spec, options, cache) for spec in specs]
            write("dl4bi_predict", results, ceilings, options)


def write(name: str, results: list[dict], ceilings: dict, options) -> None:
    """Writes and prints the tables of one case."""
    about = {**circumstances(), "rounds": options.rounds}
    sections = [f"## {result['title']}\n\n{_table(result)}\n{_bounds(result, ceilings)}" for result in results]
    text = (
        "Median over rounds (least - most); peak resident memory of the process, compilation included; ratio of the "
        "times to the peer as shipped, of the same round. dl4bi: TISA bias, five bases per head, otherwise as "
        "shipped (heads of 16 channels, 0.38 M parameters), or with the heads of 32 channels that the npax presets "
        f"have. Measured ceilings: {_words(ceilings)}.\n\n"
    )
    name += options.suffix
    path = write_markdown(name, "Beside dl4bi", text + "\n".join(sections), about)
    write_json(name, {**about, "ceilings": ceilings, "results": results})
    print(f"\n{text}" + "\n".join(sections) + f"\n{path}")


def side_by_side(title: str, spec: dict, options, cache: str) -> dict:
    """Rounds of one case, the peer as shipped first; the rows hold seconds per call by round."""
    case = spec["case"]
    rows = [(f"dl4bi {PEER_MODEL[case]}, {v}", options.peer_python, "_side_dl4bi.py", v) for v in PEER[case]]
    rows += [(f"npax KR: SA, {v}", sys.executable, "_side_npax.py", v) for v in NPAX[case]]
    print(f"\n{title}", flush=True)
    workers = []
    try:
        for name, python, script, variant in rows:
            workers.append(Worker(name, python, script, {**spec, "variant": variant}, cache))
            print(f"  {name}: first call {workers[-1].about['first_call_seconds']:.1f} s", flush=True)
        for _ in range(options.rounds):
            for worker in workers:
                worker.round()
    finally:
        for worker in workers:
            worker.stop()
    base = workers[0].seconds
    out = []
    for worker in workers:
        ratios = [b / s for b, s in zip(base, worker.seconds, strict=True)]
        out.append({"name": worker.name, **worker.about, "seconds": worker.seconds, "ratios": ratios})
        out[-1]["peak_gb"] = worker.peak_gb
        print(f"  {worker.name}: {_spread(worker.seconds)} s, {_spread(ratios)} x", flush=True)
    return {"title": title, "spec": spec, "rows": out}


class Worker:
    """A contender that waits for its turn."""

    def __init__(self, name, python, script, spec, cache):
        self.name, self.seconds, self.peak_gb = name, [], 0.0
        command = [str(python), str(HERE / script), json.dumps(spec)]
        self.process = _start(command, cache)
        self.about = self._read()

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self._read()
        self.seconds.append(answer["seconds"])
        self.peak_gb = answer["peak_gb"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: the process ended with status {self.process.wait()}; its errors are above.")
        return json.loads(line)


def _start(command, cache):
    """Large pages of memory for both sides: `npax train` asks for them by itself, dl4bi has no command to do so."""
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache, "GLIBC_TUNABLES": LARGE_PAGES}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def _ceilings(cache):
    out, _ = _start([sys.executable, str(HERE / "_side_npax.py"), '{"case": "ceilings"}'], cache).communicate()
    return json.loads(out)


def _table(result):
    header = ["", "parameters", "seconds", "peak memory", "times faster"]
    rows = [
        [
            row["name"],
            f"{row['parameters']:,}",
            _spread(row["seconds"]),
            f"{row['peak_gb']:.2f} GB",
            _spread(row["ratios"]),
        ]
        for row in result["rows"]
    ]
    return table(header, rows)


def _bounds(result, ceilings):
    """What the arithmetic of KR: SA takes at the measured ceilings, if nothing overlapped and nothing else cost."""
    spec = result["spec"]
    nc, nt, batch, passes = (50, 150, spec["batch"], 3) if spec["case"] == "train" else (spec["nc"], spec["nt"], 1, 1)
    blocks, size, heads, head_size, hidden = 6, 64, 4, 32, 256
    tokens = nc * (blocks - 1) + nt * blocks  # the last block leaves the context as it is
    weights = 4 * size * heads * head_size + 2 * size * hidden
    ends = 3 * size * 256 + 256 * 128 + 128 * 64 + 64 * 256 + 256 * 64
    pairs = batch * (nc * nc * (blocks - 1) + nc * nt * blocks)
    linear = 2 * batch * (tokens * weights + (nc + nt) * ends) * passes / 1e9
    # Backward: scores again, then the gradients of queries, keys, values and weights: 7 products for 2.
    attention = pairs * heads * head_size * 2 * (2 if passes == 1 else 7) / 1e9
    recomputed = 1 if passes == 1 else 2
    exponentials = {
        "no bias": pairs * heads * recomputed / 1e9,
        "geometric": pairs * (heads + 1) * recomputed / 1e9,
        "TISA": pairs * heads * 6 * recomputed / 1e9,
    }
    matmul = (linear + attention) / ceilings["matmul_gflops"]
    per_exp = {name: count / ceilings["exp_g_per_s"] for name, count in exponentials.items()}
    kept = 4 * 2 * blocks * heads * head_size * nc * batch / 1e6
    return (
        f"What bounds it: {linear:.3g} GFLOP in linear maps and {attention:.3g} in attention take {matmul:.3g} s "
        "at the matmul ceiling; exponentials take "
        + ", ".join(f"{seconds:.3g} s ({name})" for name, seconds in per_exp.items())
        + f". Keys and values of the context fill {kept:.3g} MB, {kept / 1e3 / ceilings['copy_gb_per_s']:.2g} s to "
        "move once: memory is no bound as long as scores stay in blocks.\n"
    )


def _spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} - {max(values):.3g})"


def _words(ceilings):
    return (
        f"matmul {ceilings['matmul_gflops']:.0f} GFLOP/s, exp {ceilings['exp_g_per_s']:.2f} G/s, "
        f"copy {ceilings['copy_gb_per_s']:.1f} GB/s"
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", required=True, help="an interpreter that can import dl4bi")
    parser.add_argument("--only", nargs="+", choices=["train", "predict"], default=["train", "predict"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 4000, 10000], help="context and target points")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train-steps", type=int, default=10, help="steps per round")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--suffix", default="", help="of the result files, to keep those of another machine")
    return parser.parse_args()


if __name__ == "__main__":
    main()
