"""What lets TNP-KR: SA learn in few steps: one thing at a time taken away.

    python benchmarks/ablation.py --steps 750

All runs: GP-1D RBF, batch 32, the seed and the tasks of `npax bench`. `results/ablation.md` and `.png`.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from _report import RESULTS, circumstances, table, write_json, write_markdown

import npax
from npax.bench import draw, mean_and_error, score_floor, score_model
from npax.bench.run import EVALUATION_SEED
from npax.files import replaced
from npax.tasks import AbstractTasks, GPTask, RBFPrior, gp_1d
from npax.training import adamw, muon, yogi

BATCH, POINTS, FEW = 32, 10, 128
PUBLISHED = -0.462  # TNP-KR: SA, GP-1D RBF, after 100,000 steps (KR2)


class OneKernel(AbstractTasks):
    """A whole batch as one task: its functions are drawn from one kernel."""

    tasks: GPTask

    def sample(self, key):
        kernel_key, key = jr.split(key)
        kernel = self.tasks.kernel.draw(kernel_key)
        known = eqx.tree_at(lambda tasks: tasks.kernel, self.tasks, Known(kernel))
        return jax.vmap(known.sample)(jr.split(key, BATCH))


class Known(npax.tasks.AbstractKernelPrior):
    """A prior that is certain."""

    kernel: object

    def draw(self, key):
        return self.kernel

    def quadrature(self, nodes):
        return jax.tree.map(lambda a: a[None], self.kernel), np.ones(1)


def of_batch(model, batch, key):
    return jnp.mean(jax.vmap(lambda task: npax.objectives.nll(model, task))(batch))


def shipped(key):
    return npax.models.presets.tnp_kr_sa(1, 1, key=key)


def equal_bases(key):
    """Every basis of every head as wide as all others."""
    return eqx.tree_at(lambda model: model.stack.attention.bias.b, shipped(key), replace_fn=jnp.ones_like)


PER_TASK, PER_BATCH = {"batch_size": BATCH}, {"batch_size": 1, "objective": of_batch}
RUNS = {
    "as npax does": (shipped, PER_TASK, muon),
    "bases of equal widths": (equal_bases, PER_TASK, muon),
    "a kernel for each batch, not for each task": (shipped, PER_BATCH, muon),
    "AdamW": (shipped, PER_TASK, adamw),
    "Yogi, as in KR2": (shipped, PER_TASK, yogi),
    "equal widths, a kernel for each batch, Yogi": (equal_bases, PER_BATCH, yogi),
}
"""The start, how tasks are drawn, and the optimiser, each at its defaults."""


def main() -> None:
    options = _options()
    tasks = gp_1d(RBFPrior())
    batch, _ = draw(tasks, options.tasks, EVALUATION_SEED)
    floor, few = score_floor(tasks, batch)["nll"], jax.tree.map(lambda a: a[:FEW], batch)
    every = max(1, options.steps // POINTS)
    found = {}
    for name, (model, drawing, optimizer) in RUNS.items():
        started = time.monotonic()
        result = npax.fit(
            model,
            OneKernel(tasks) if drawing is PER_BATCH else tasks,
            steps=options.steps,
            key=jr.key(0),
            optimizer=optimizer(options.steps),
            evaluate=lambda model: float(score_model(tasks, few, model)["nll"].mean()),
            evaluate_every=every,
            chunk=every,
            progress=False,
            **drawing,
        )
        curve = [[step, nll] for step, nll in result.evaluations]
        gap = score_model(tasks, batch, result.model)["nll"] - floor
        (mean, error), seconds = mean_and_error(gap), time.monotonic() - started
        found[name] = {"gap": mean, "gap_error": error, "curve": curve, "seconds": seconds}
        print(f"{name}: {mean:.3f} +- {error:.3f} above the floor, {seconds:,.0f} s", flush=True)
    about = circumstances()
    write_json("ablation", {**about, "steps": options.steps, "floor": float(floor.mean()), "runs": found})
    _write(found, floor, options, about)


def _write(found, floor, options, about):
    rows = [
        [
            name,
            f"{floor.mean() + run['gap']:.3f}",
            f"{run['gap']:.3f} ± {run['gap_error']:.3f}",
            f"{run['seconds']:,.0f}",
        ]
        for name, run in found.items()
    ]
    body = (
        f"TNP-KR: SA (`npax.models.presets.tnp_kr_sa`) on GP-1D RBF, {options.steps:,} steps of batch {BATCH}, one "
        f"seed; {options.tasks:,} evaluation tasks, whose Bayes floor is {floor.mean():.3f}; published, 100,000 steps: "
        f"{PUBLISHED}.\n\n{table(['', 'NLL', 'gap to the floor', 'seconds'], rows)}\n![Learning curves](ablation.png)\n"
    )
    write_markdown("ablation", "What lets TNP-KR: SA learn in few steps", body, about)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    ax = figure.subplots()
    for name, run in found.items():
        ax.plot(*np.transpose(run["curve"]), marker=".", label=name)
    ax.axhline(floor[:FEW].mean(), color="black", linewidth=1, label="Bayes floor")
    ax.set(xlabel="training steps", ylabel=f"NLL on {FEW} of the tasks", title="GP-1D, RBF: TNP-KR: SA")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside right upper")
    with replaced(RESULTS / "ablation.png") as partial:
        figure.savefig(partial, dpi=120)


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=750)
    parser.add_argument("--tasks", type=int, default=1024)
    return parser.parse_args()


if __name__ == "__main__":
    main()
