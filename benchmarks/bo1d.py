"""Bayesian optimisation of functions drawn from Gaussian processes (BO-1D of KR2): regret beside the oracle's.

    python benchmarks/bo1d.py                                            # gp-universal, RBF, EI and UCB
    python benchmarks/bo1d.py --weights A.safetensors B.safetensors --kernel rbf --acquisition ei ucb --seeds 5

Functions are those of GP-1D, 10 initial evaluations, 50 iterations, candidates the 150 points of the task. Every
method sees the same functions, the same initial points and the same noise. Writes `results/bo1d.md` and `.json`, and
with `--plot` a picture of the regrets and of the worst searches, `results/bo1d.png`.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from _report import RESULTS, circumstances, table, write_json, write_markdown

import npax
from npax.bayesopt import (
    ConfidenceBound,
    ExpectedImprovement,
    ModelSurrogate,
    Problem,
    RandomSearch,
    Search,
    ThompsonSampling,
    draw_problem,
    search_all,
)
from npax.serialise import load_card
from npax.tasks import Matern32Prior, PeriodicPrior, RBFPrior, gp_1d

KERNELS = {
    "rbf": ("RBF", RBFPrior()),
    "matern": ("Matern 3/2", Matern32Prior()),
    "periodic": ("periodic", PeriodicPrior()),
}
ACQUISITIONS = {
    "ei": ("expected improvement", ExpectedImprovement()),
    "ucb": ("confidence bound", ConfidenceBound()),
    "thompson": ("Thompson sampling", ThompsonSampling()),
}
COLUMNS = ("matern", "periodic", "rbf")
PUBLISHED = {  # KR2, tables 13 and 14: mean and standard error, in the order of COLUMNS
    "ei": {
        "NP": ((0.094, 0.010), (0.192, 0.015), (0.055, 0.008)),
        "CNP": ((0.085, 0.009), (0.247, 0.018), (0.032, 0.005)),
        "BNP": ((0.076, 0.009), (0.227, 0.016), (0.046, 0.007)),
        "ANP": ((0.059, 0.009), (0.105, 0.011), (0.027, 0.007)),
        "CANP": ((0.062, 0.009), (0.110, 0.011), (0.026, 0.006)),
        "BANP": ((0.050, 0.008), (0.081, 0.009), (0.024, 0.005)),
        "ConvCNP": ((0.017, 0.005), (0.028, 0.004), (0.007, 0.002)),
        "TNP-D": ((0.050, 0.008), (0.045, 0.006), (0.018, 0.004)),
        "TNP-KR: PERF": ((0.044, 0.007), (0.049, 0.006), (0.030, 0.006)),
        "TNP-KR: DKA": ((0.048, 0.007), (0.038, 0.005), (0.022, 0.005)),
        "TNP-KR: SA": ((0.049, 0.008), (0.036, 0.006), (0.013, 0.003)),
    },
    "ucb": {
        "NP": ((0.134, 0.009), (0.123, 0.010), (0.077, 0.006)),
        "CNP": ((0.108, 0.008), (0.132, 0.010), (0.068, 0.006)),
        "BNP": ((0.126, 0.008), (0.133, 0.010), (0.067, 0.006)),
        "ANP": ((0.022, 0.003), (0.047, 0.006), (0.009, 0.003)),
        "CANP": ((0.021, 0.003), (0.049, 0.005), (0.010, 0.002)),
        "BANP": ((0.025, 0.004), (0.046, 0.006), (0.012, 0.003)),
        "ConvCNP": ((0.022, 0.003), (0.046, 0.005), (0.005, 0.002)),
        "TNP-D": ((0.016, 0.003), (0.045, 0.005), (0.006, 0.002)),
        "TNP-KR: PERF": ((0.015, 0.002), (0.045, 0.005), (0.006, 0.002)),
        "TNP-KR: DKA": ((0.021, 0.004), (0.048, 0.005), (0.002, 0.000)),
        "TNP-KR: SA": ((0.020, 0.003), (0.045, 0.006), (0.004, 0.001)),
    },
}
GROUP = 100
"""Searches per compiled call."""


def main() -> None:
    options = _options()
    surrogates = {_label(name): ModelSurrogate(npax.load(name)) for name in options.weights}
    sections, results, pictures = [], {}, []
    for kernel in options.kernel:
        problems, keys = _problems(kernel, options)
        lower = {"random search": _run(None, RandomSearch(), problems, keys, options, kernel)}
        results[kernel] = {}
        for name in options.acquisition:
            runs = {"oracle GP": _run(None, ACQUISITIONS[name][1], problems, keys, options, kernel)}
            for weights, surrogate in surrogates.items():
                runs[weights] = _run(surrogate, ACQUISITIONS[name][1], problems, keys, options, kernel)
            runs |= lower
            title = f"{KERNELS[kernel][0]}, {ACQUISITIONS[name][0]}"
            results[kernel][name] = {method: _figures(run, seconds) for method, (run, seconds) in runs.items()}
            sections.append(f"## {title}\n\n{_table(results[kernel][name], kernel, name)}")
            print(f"\n{sections[-1]}", flush=True)
            pictures.append((title, problems, {method: run for method, (run, _) in runs.items()}))
    about = {**circumstances(), **vars(options)}
    path = write_markdown(options.name, "Bayesian optimisation of 1-D functions", _text(options, sections), about)
    write_json(options.name, {**about, "published": PUBLISHED, "results": results})
    print(f"\n{path}")
    if options.plot:
        _plot(pictures, surrogates, options)


def _problems(kernel, options) -> tuple[Problem, jax.Array]:
    """The functions of all seeds, those left out that could not be drawn, and a key for each search."""
    tasks = gp_1d(KERNELS[kernel][1])
    total = options.tasks * options.seeds
    draw_key, search_key = jr.split(jr.key(options.seed))
    problems = jax.jit(jax.vmap(lambda key: draw_problem(tasks, key)))(jr.split(draw_key, total))
    sound = np.flatnonzero(np.isfinite(np.asarray(problems.f)).all(axis=1))
    if len(sound) < total:
        print(f"{total - len(sound)} of {total} functions could not be drawn and are left out", flush=True)
    return jax.tree.map(lambda a: a[sound], problems), jr.split(search_key, total)[sound]


def _run(surrogate, acquisition, problems, keys, options, kernel) -> tuple[Search, float]:
    """All searches of one method, as NumPy arrays, and the seconds that they took, compilation included."""
    started = time.monotonic()
    parts, size = [], 8 if jax.default_backend() == "cpu" else GROUP
    for start in range(0, len(keys), GROUP):
        group = jax.tree.map(lambda a, start=start: a[start : start + GROUP], (problems, keys))
        parts.append(search_all(surrogate, acquisition, *group, noise_std=options.noise, batch_size=size))
        jax.block_until_ready(parts[-1])
    seconds = time.monotonic() - started
    print(
        f"{kernel}: {type(surrogate or 'oracle').__name__}, {type(acquisition).__name__}, {seconds:.0f} s", flush=True
    )
    return jax.tree.map(lambda *a: np.concatenate(a), *parts), seconds


def _figures(run: Search, seconds: float) -> dict:
    figures = {"searches": len(run.chosen), "seconds": seconds}
    for name, values in (
        ("simple", run.simple[:, -1]),
        ("recommended", run.recommended),
        ("cumulative", run.cumulative[:, -1]),
    ):
        figures |= {name: float(values.mean()), f"{name}_standard_error": _error(values)}
    figures["found"] = float(np.mean(run.simple[:, -1] == 0))
    return figures | {"simple_by_iteration": run.simple.mean(axis=0).tolist()}


def _table(figures: dict, kernel: str, acquisition: str) -> str:
    header = ["", "searches", "simple regret", "recommended", "cumulative", "minimum found", "seconds"]
    rows = [
        [
            method,
            f"{row['searches']:,}",
            *(f"{row[name]:.3f} ± {row[f'{name}_standard_error']:.3f}" for name in ("simple", "recommended")),
            f"{row['cumulative']:.2f} ± {row['cumulative_standard_error']:.2f}",
            f"{row['found']:.0%}",
            f"{row['seconds']:.0f}",
        ]
        for method, row in figures.items()
    ]
    for method, values in PUBLISHED.get(acquisition, {}).items():
        mean, error = values[COLUMNS.index(kernel)]
        rows.append([f"{method}, published", "500", f"{mean:.3f} ± {error:.3f}", "", "", "", ""])
    return table(header, rows)


def _text(options, sections) -> str:
    return (
        f"Functions of GP-1D, {options.tasks} for each of {options.seeds} seeds; 10 evaluations at random, then 50 "
        f"iterations among the task's 150 points; values carry noise of standard deviation {options.noise}. Mean ± "
        "standard error over searches. *Simple regret*: the lowest value of the noiseless function among the "
        "evaluated points, above its true minimum over the 150. *Recommended*: the same of the evaluated point where "
        "the final posterior mean is lowest. *Cumulative*: the regrets of the 50 iterations, summed. *Oracle GP*: "
        "knows kernel and noise. Seconds with compilation. Published: KR2, tables 13 and 14, mean of 5 seeds of 100 "
        "functions; the paper does not say whether evaluations are noisy, nor the width of its confidence bound (here "
        f"{ConfidenceBound().width:g}).\n\n" + "\n".join(sections)
    )


def _plot(pictures, surrogates, options) -> None:
    """For each kernel and acquisition: the regrets, and the two worst searches of the first model."""
    from matplotlib.figure import Figure

    from npax import plot

    figure = Figure(figsize=(15, 4 * len(pictures)), layout="constrained")
    grid = figure.subplots(len(pictures), 3, squeeze=False)
    weights, surrogate = next(iter(surrogates.items()))
    for (title, problems, runs), axes in zip(pictures, grid, strict=True):
        for method, run in runs.items():
            plot.regret(axes[0], run.simple, label=method, first=10)
        axes[0].set_title(title)
        run = runs[weights]
        for ax, worst in zip(axes[1:], np.argsort(-run.recommended), strict=False):
            x, f = problems.x[worst], np.asarray(problems.f[worst])
            chosen, y = run.chosen[worst], run.y[worst]
            seen = npax.bayesopt.Evaluations(x[chosen], jnp.asarray(y), jnp.ones(len(y), bool))
            mean, std = (np.asarray(a) for a in surrogate.moments(seen, x))
            place = np.asarray(x)[:, 0]
            plot.search(
                ax,
                place,
                mean,
                std,
                f,
                evaluations=(place[chosen], y),
                proposed=float(place[chosen][mean[chosen].argmin()]),
            )
            ax.set_title(f"{weights}: regret {run.recommended[worst]:.3f}")
    path = RESULTS / f"{options.name}.png"
    figure.savefig(path, dpi=120)
    print(path)


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _label(weights):
    """A pretrained model's name; of weights from `npax bench`, the preset and its training steps."""
    if not weights.endswith(".safetensors"):
        return weights
    card = load_card(weights)
    return f"{card['preset']}, {card['steps']:,} steps" if "preset" in card else weights


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", nargs="+", default=["gp-universal"], help="pretrained models, or paths to weights")
    parser.add_argument("--kernel", nargs="+", choices=list(KERNELS), default=["rbf"])
    parser.add_argument("--acquisition", nargs="+", choices=list(ACQUISITIONS), default=["ei", "ucb"])
    parser.add_argument("--tasks", type=int, default=100, help="functions per seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.1, help="standard deviation of the noise on evaluations")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--plot", action="store_true", help="write a picture too")
    parser.add_argument("--name", default="bo1d", help="of the result files")
    return parser.parse_args()


if __name__ == "__main__":
    main()
