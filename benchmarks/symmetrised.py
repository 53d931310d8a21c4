"""What several views are worth: `npax.Symmetrised` beside the model itself, on fresh GP tasks.

    python benchmarks/symmetrised.py

The tasks and scores of `gp_accuracy.py`; gaps are paired, in one dimension to the Bayes floor, in two to the GP of the
true kernel. The symmetrised models ask the model four times: about the task and its mirror images, and about views of
it that are turned and scaled, too. Lengths are known in these tasks, which the scaled ones deny. Writes
`results/symmetrised.md` and `.json`.
"""

import argparse
import time

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from gp_accuracy import SUITES

import npax
from npax.bench import draw, mean_and_error, score_floor, score_model, score_oracle
from npax.models import turned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="gp-universal", help="name of a pretrained model, or a path to weights")
    parser.add_argument("--tasks", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    model = npax.load(options.model)
    rows = []
    for title, tasks in SUITES.values():
        batch, kernels = draw(tasks, options.tasks, options.seed)
        best = score_floor(tasks, batch) if tasks.dx == 1 else score_oracle(tasks, batch, kernels)
        plain = None
        models = {options.model: model, "mirrored": npax.Symmetrised(model)}
        models["turned"] = npax.Symmetrised(model, turned(model.dx, tasks.dx))
        for name, one in models.items():
            started = time.monotonic()
            scores = score_model(tasks, batch, one)
            plain = scores if plain is None else plain
            rows.append({"tasks": title, "predictor": name, **_row(scores, best, plain)})
            print(rows[-1], f"{time.monotonic() - started:.0f} s", flush=True)
    about = {**circumstances(), "model": options.model, "tasks": options.tasks, "seed": options.seed}
    header = ["", "", "gap", "better by", "RMSE", "95 % coverage"]
    lines = [
        [
            row["tasks"],
            row["predictor"],
            f"{row['gap']:.3f} ± {row['gap_error']:.3f}",
            f"{row['gain']:.3f} ± {row['gain_error']:.3f}" if row["gain"] else "",
            f"{row['rmse']:.3f}",
            f"{row['coverage']:.3f}",
        ]
        for row in rows
    ]
    text = f"{options.tasks:,} tasks of each kind (seed {options.seed}), nats per target value.\n\n"
    print(write_markdown("symmetrised", "Answers averaged over views of a task", text + table(header, lines), about))
    write_json("symmetrised", {**about, "rows": rows})


def _row(scores, best, plain):
    gap, gap_error = mean_and_error(scores["nll"] - best["nll"])
    gain, gain_error = mean_and_error(plain["nll"] - scores["nll"])
    rmse, coverage = np.sqrt(scores["squared_error"].mean()), scores["covered"].mean()
    return {
        "gap": gap,
        "gap_error": gap_error,
        "gain": gain,
        "gain_error": gain_error,
        "rmse": float(rmse),
        "coverage": float(coverage),
    }


if __name__ == "__main__":
    main()
