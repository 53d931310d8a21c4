"""Whether our models learn as fast as dl4bi's of the same name: the same tasks, steps, batch and optimiser (Yogi).

    python -m venv peer && peer/bin/pip install "dl4bi[cpu]"
    python benchmarks/learning_peer.py --peer-python peer/bin/python --steps 750

GP-1D RBF, batch 32, the optimiser of KR2 (Yogi from 1e-3, norms clipped at 3) with its cosine over these steps; dl4bi's
models as in `model_speed.py`. Both sides are scored on the same tasks. `results/learning_peer.md` and `.json`.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import jax.random as jr
import numpy as np
from _report import circumstances, table, write_json, write_markdown
from model_speed import PEERS

import npax
from npax.bench import draw, mean_and_error, model_presets, score_floor, score_model
from npax.bench.run import EVALUATION_SEED
from npax.serialise import count_parameters
from npax.tasks import RBFPrior, gp_1d
from npax.training import yogi

BATCH, CALL = 32, 25


def main() -> None:
    options = _options()
    tasks = gp_1d(RBFPrior())
    batch, _ = draw(tasks, options.tasks, EVALUATION_SEED)
    floor, found, about = score_floor(tasks, batch)["nll"], {}, circumstances()
    for name in options.model:
        theirs, ours = _theirs(PEERS[name], batch, options), _ours(name, tasks, batch, options)
        found[name] = {"ours": _about(ours, floor), "theirs": {"model": PEERS[name], **_about(theirs, floor)}}
        found[name]["difference"] = mean_and_error(np.asarray(ours["nll"]) - np.asarray(theirs["nll"]))
        write_json("learning_peer", {**about, "steps": options.steps, "floor": float(floor.mean()), "models": found})
        write_markdown("learning_peer", "Learning beside dl4bi", _text(found, options), about)
        print(name, found[name], flush=True)


def _ours(name, tasks, batch, options):
    started = time.monotonic()
    result = npax.fit(
        lambda key: model_presets()[name](1, 1, key=key),
        tasks,
        steps=options.steps,
        key=jr.key(0),
        batch_size=BATCH,
        optimizer=yogi(options.steps, 1e-3),
        chunk=CALL,
        progress=False,
    )
    seconds = time.monotonic() - started
    nll = score_model(tasks, batch, result.model)["nll"]
    return {"nll": nll, "parameters": count_parameters(result.model), "seconds": seconds}


def _theirs(model, batch, options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.npz"
        known = {"s_ctx": batch.xc, "f_ctx": batch.yc, "mask_ctx": batch.mask_c, "s_test": batch.xt, "f_test": batch.yt}
        np.savez(path, **{name: np.asarray(a) for name, a in known.items()})
        spec = {"case": "learn", "variant": "same widths", "model": model, "batch": BATCH, "steps": CALL}
        spec |= {"total": options.steps, "tasks": str(path)}
        side = Path(__file__).parent / "_side_dl4bi.py"
        done = subprocess.run(
            [options.peer_python, side, json.dumps(spec)], check=True, stdout=subprocess.PIPE, text=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def _about(run, floor):
    nll = np.asarray(run["nll"])
    gap, error = mean_and_error(nll - floor)
    return {
        "nll": float(nll.mean()),
        "gap": gap,
        "gap_error": error,
        "parameters": run["parameters"],
        "seconds": run["seconds"],
    }


def _text(found, options):
    rows = [
        [
            f"`{name}`",
            *(f"{runs[side]['parameters']:,}" for side in ("ours", "theirs")),
            *(f"{runs[side]['gap']:.3f} ± {runs[side]['gap_error']:.3f}" for side in ("ours", "theirs")),
            "{:.3f} ± {:.3f}".format(*runs["difference"]),
            *(f"{runs[side]['seconds']:,.0f}" for side in ("ours", "theirs")),
        ]
        for name, runs in found.items()
    ]
    header = ["", "parameters", "of dl4bi's", "gap", "of dl4bi's", "difference", "seconds", "of dl4bi's"]
    return (
        f"GP-1D RBF, {options.steps:,} steps of batch {BATCH}, Yogi (1e-3, cosine over these steps, norms clipped at "
        f"3), one seed; NLL above the Bayes floor on {options.tasks:,} tasks, the same for both, and the mean of ours "
        "less dl4bi's, task by task. Seconds with compilation.\n\n" + table(header, rows)
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", required=True, help="an interpreter that can import dl4bi")
    parser.add_argument("--model", nargs="+", choices=list(PEERS), default=["tnp_kr_dka", "tnp_kr_perf", "canp", "cnp"])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--tasks", type=int, default=1024)
    return parser.parse_args()


if __name__ == "__main__":
    main()
