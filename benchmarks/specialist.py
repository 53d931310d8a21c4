"""How far a specialist comes on GP-1D RBF: its learning curve against the published figure and the Bayes floor.

    python benchmarks/specialist.py --steps 4000 --checkpoint runs/specialist

Interrupted, the same command goes on where it stopped. Writes `results/specialist.json` and `.png`, and the weights
(`specialist.safetensors`) into the folder of the checkpoints.
"""

import argparse
import io
import time
from pathlib import Path

import jax
import jax.random as jr
import numpy as np
from _report import RESULTS, circumstances, write_json

import npax
from npax.bench import draw, mean_and_error, score_floor, score_model
from npax.files import write_atomically
from npax.tasks import GPPosteriorTask, RBFPrior, gp_1d
from npax.training.checkpoint import newest

PUBLISHED = -0.462  # TNP-KR: SA, GP-1D RBF, after 100,000 steps (KR2, mean of 5 seeds)


def main() -> None:
    options = _options()
    tasks = gp_1d(RBFPrior())
    batch, _ = draw(tasks, options.tasks, seed=2026)
    print(f"Bayes floor of the {options.tasks} evaluation tasks ...", flush=True)
    floor = score_floor(tasks, batch)["nll"]
    curve = Curve(options, floor)
    print(f"floor {floor.mean():.3f}, published {PUBLISHED}", flush=True)

    result = npax.fit(
        lambda key: getattr(npax.models.presets, options.preset)(1, 1, key=key),
        GPPosteriorTask(tasks) if options.objective == "posterior" else tasks,
        objective=npax.objectives.posterior_nll if options.objective == "posterior" else npax.objectives.nll,
        steps=options.steps,
        key=jr.key(options.seed),
        optimizer=npax.training.muon(options.steps, options.learning_rate),
        checkpoint=options.checkpoint,
        evaluate=lambda model: curve.add(score_model(tasks, batch, model)),
        evaluate_every=options.every,
    )
    about = {"preset": options.preset, "steps": result.steps, "tasks": "gp_1d(RBFPrior())", **curve.points[-1]}
    weights = Path(options.checkpoint) / f"{options.name}.safetensors"
    npax.save(weights, result.model, about)
    print(f"curve: {RESULTS / options.name}.json and .png; weights: {weights}")


class Curve:
    """The learning curve on disk, longer by a point at each evaluation; those of an earlier call are kept."""

    def __init__(self, options, floor):
        self.options, self.floor, self.points = options, floor, []
        folder = Path(options.checkpoint)
        saved = newest(folder)  # where `fit` goes on
        self.step = 0 if saved is None else saved[2]["step"]
        self.seconds, self.path = 0.0, folder / "curve.npz"
        if saved and self.path.exists():
            with np.load(self.path) as stored:
                keys = list(stored)
                rows = zip(*(stored[key] for key in keys), strict=True)
                self.points = [dict(zip(keys, map(float, row), strict=True)) for row in rows]
            self.points = [point for point in self.points if point["step"] <= self.step]
            self.seconds = self.points[-1]["seconds"] if self.points else 0.0
        self.started = time.monotonic()

    def add(self, scores):
        done = (self.step // self.options.every + 1) * self.options.every
        self.step = min(done, self.options.steps)
        nll, error = mean_and_error(scores["nll"])
        gap, gap_error = mean_and_error(scores["nll"] - self.floor)
        point = {
            "step": self.step,
            "nll": nll,
            "standard_error": error,
            "gap_to_floor": gap,
            "gap_standard_error": gap_error,
            "rmse": float(np.sqrt(scores["squared_error"].mean())),
            "coverage": float(scores["covered"].mean()),
            "seconds": self.seconds + time.monotonic() - self.started,
        }
        self.points = [*(p for p in self.points if p["step"] < self.step), point]
        self.write()
        print(f"step {self.step}: nll {nll:.3f} +- {error:.3f}, gap to the floor {gap:.3f}", flush=True)
        return point

    def write(self):
        content = io.BytesIO()
        np.savez(content, **{key: np.array([p[key] for p in self.points]) for key in self.points[0]})
        write_atomically(self.path, content.getvalue())
        floor, floor_error = mean_and_error(self.floor)
        content = {
            **circumstances(),
            "task": "GP-1D RBF",
            "preset": self.options.preset,
            "parameters": self.options.parameters,
            "objective": self.options.objective,
            "optimizer": f"muon({self.options.steps}, {self.options.learning_rate})",
            "seed": self.options.seed,
            "evaluation_tasks": self.options.tasks,
            "bayes_floor": floor,
            "bayes_floor_standard_error": floor_error,
            "published": PUBLISHED,
            "curve": self.points,
        }
        write_json(self.options.name, content)
        _plot(self.options, self.points, floor)


def _plot(options, points, floor):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    steps, nll, error = (np.array([p[key] for p in points]) for key in ("step", "nll", "standard_error"))
    axes.errorbar(
        steps, nll, error, marker=".", capsize=2, label=f"npax {options.preset}, {options.objective} objective"
    )
    axes.axhline(PUBLISHED, color="tab:orange", linestyle="--", label=f"published KR: SA, 100,000 steps: {PUBLISHED}")
    axes.axhline(floor, color="black", linestyle=":", label=f"Bayes floor of these tasks: {floor:.3f}")
    axes.set(xlabel="training steps (batch 32)", ylabel=f"NLL on {options.tasks:,} fresh tasks", title="GP-1D RBF")
    axes.legend(frameon=False)
    figure.savefig(RESULTS / f"{options.name}.png", dpi=150)
    plt.close(figure)


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--checkpoint", default="runs/specialist", help="folder to save to and to resume from")
    parser.add_argument("--preset", default="tnp_kr_sa_rotary", help="a function of npax.models.presets")
    parser.add_argument("--objective", choices=["posterior", "nll"], default="posterior")
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    parser.add_argument("--every", type=int, default=500, help="steps between evaluations; a multiple of 25")
    parser.add_argument("--tasks", type=int, default=2048, help="evaluation tasks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="specialist", help="of the result files")
    options = parser.parse_args()
    if options.every % 25:
        parser.error("--every must be a multiple of 25, the steps between two looks at the clock")
    shapes = jax.eval_shape(lambda key: jax.tree.leaves(_arrays(options.preset, key)), jr.key(0))
    options.parameters = sum(a.size for a in shapes)
    return options


def _arrays(preset, key):
    import equinox as eqx

    return eqx.filter(getattr(npax.models.presets, preset)(1, 1, key=key), eqx.is_inexact_array)


if __name__ == "__main__":
    main()
