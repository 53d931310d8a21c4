"""How close to the truth: zero-shot accuracy on fresh GP tasks, beside the Bayes floor and fitted Gaussian processes.

    python benchmarks/gp_accuracy.py                                     # gp-universal on RBF, Matern 3/2, RBF 2-D
    python benchmarks/gp_accuracy.py --model runs/specialist/specialist.safetensors --only rbf-1d

Tasks are those of KR2 (noise 0.1 on the context); what is scored is the noiseless function. Rows that see all tasks
come first; the scikit-learn Gaussian process, fitted to each task, and the estimator, with and without normalising each
task by its context, see the first `--slow-tasks` of them. What normalising costs at least is told by the floor of all
predictors that see standardised values, which do not tell how large and where they were: hyper-parameters, mean and
amplitude integrated out. Gaps are paired: same tasks, same targets. Writes `results/gp_accuracy.md` and `.json`.
"""

import argparse
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import scipy.stats
from _report import circumstances, table, write_json, write_markdown
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import npax
from npax.bench import Scores, draw, mean_and_error, score_floor, score_model, score_oracle
from npax.linalg import cholesky, solve_lower
from npax.tasks import GPTask, Matern32Prior, RBFPrior, gp_1d, gp_2d

SUITES: dict[str, tuple[str, GPTask]] = {
    "rbf-1d": ("GP-1D RBF", gp_1d(RBFPrior())),
    "matern-1d": ("GP-1D Matern 3/2", gp_1d(Matern32Prior())),
    "rbf-2d": ("GP-2D RBF", gp_2d()),
}


def main() -> None:
    options = _options()
    model = npax.load(options.model)
    sections, results = [], {}
    for name in options.only:
        title, tasks = SUITES[name]
        if tasks.dx > model.dx:
            print(f"{title}: left out, the model takes {model.dx} coordinate(s)", flush=True)
            continue
        rows = evaluate(model, title, tasks, options)
        results[name] = rows
        sections.append(f"## {title}\n\n{_table(rows)}")
        print(f"\n{sections[-1]}", flush=True)
    about = {**circumstances(), "model": options.model, "tasks": options.tasks, "slow_tasks": options.slow_tasks}
    text = (
        f"Model `{options.model}`; {options.tasks:,} fresh tasks of each kind (seed {options.seed}). Scores of the "
        "noiseless function, mean over tasks ± standard error; NLL per target value, lower is better. The gap is "
        "the paired difference in NLL to the reference, the first row. The median is over tasks.\n\n"
    )
    path = write_markdown(options.name, "Accuracy on Gaussian process tasks", text + "\n".join(sections), about)
    write_json(options.name, {**about, "results": results})
    print(f"\n{path}")


def evaluate(model, title: str, tasks: GPTask, options) -> list[dict]:
    """One row of figures for each predictor; the first is the reference of the gaps."""
    batch, kernels = draw(tasks, options.tasks, options.seed)
    few = options.slow_tasks
    slow = jax.tree.map(lambda a: a[:few], batch)
    contenders = {
        "true kernel and noise (oracle GP)": lambda: score_oracle(tasks, batch, kernels),
        f"npax {options.model}, raw": lambda: score_model(tasks, batch, model),
        "npax.NeuralProcessRegressor(normalize=False)": lambda: score_estimator(model, slow, normalize=False),
        "floor of all that standardise `y`": lambda: score_standardised_floor(tasks, slow),
        "npax.NeuralProcessRegressor()": lambda: score_estimator(options.model, slow),
        "scikit-learn GP, fitted": lambda: score_sklearn(slow, tasks),
    }
    if tasks.dx == 1:  # in two dimensions the oracle is the reference
        contenders = {"Bayes floor": lambda: score_floor(tasks, batch), **contenders}
    rows, reference = [], None
    for name, run in contenders.items():
        started = time.monotonic()
        scores = run()
        print(f"{title}: {name}, {time.monotonic() - started:.0f} s", flush=True)
        reference = scores if reference is None else reference
        rows.append(_row(name, scores, reference))
    return rows


def score_estimator(model, batch: npax.Task, **options) -> Scores:
    """The drop-in regressor on each task; unless told otherwise it normalises by the context."""

    def predict(x, y, xt):
        return npax.NeuralProcessRegressor(model, **options).fit(x, y).predict(xt, return_std=True, include_noise=False)

    return _score_each(batch, predict)


def score_standardised_floor(tasks: GPTask, batch: npax.Task, nodes: int = 32) -> Scores:
    r"""The exact predictive given $z = (y - m) / s$ alone, with any $m$ and $s$, for the kernel's known prior.

    The density of $z$ is $\int\!\!\int p_Y(m + s z) s^{n - 2} dm\, ds$, so mean and scale are integrated out: a
    Student's t with $n - 1$ degrees of freedom for each length scale.
    """
    with jax.enable_x64(True):
        kernels, weights = tasks.kernel.quadrature(nodes)
        wide = jax.tree.map(lambda a: a.astype(np.float64) if a.dtype == np.float32 else a, (kernels, batch))

        def one(task):
            logits, *student = jax.vmap(lambda kernel: _student(kernel, tasks.noise_std**2, task))(wide[0])
            logits = jax.nn.log_softmax(jnp.log(weights) + logits)[:, None]
            parts, y = dist.StudentT(jnp.sum(task.mask_c) - 1.0, *student), task.yt[:, 0]
            mean = jnp.sum(jnp.exp(logits) * parts.mean, axis=0)
            level = jnp.sum(jnp.exp(logits) * parts.cdf(y), axis=0)
            return {
                "nll": -jnp.mean(jax.nn.logsumexp(logits + parts.log_prob(y), axis=0)),
                "squared_error": jnp.mean(jnp.square(mean - y)),
                "covered": jnp.mean(jnp.abs(level - 0.5) < 0.475),
            }

        return {name: np.asarray(values) for name, values in jax.jit(lambda b: jax.lax.map(one, b))(wide[1]).items()}


def _student(kernel, variance, task):
    """Log-evidence of a kernel; location and scale of the t of the noiseless targets, `m` and `s` integrated out."""
    seen, n = task.mask_c, jnp.sum(task.mask_c)
    k_cc = jnp.where(seen[:, None] & seen, kernel(task.xc, task.xc), 0.0) + jnp.diag(jnp.where(seen, variance, 1.0))
    k_ct = jnp.where(seen[:, None], kernel(task.xc, task.xt), 0.0)
    columns = jnp.concatenate([seen[:, None], jnp.where(seen[:, None], task.yc, 0.0), k_ct], axis=1)
    factor = cholesky(k_cc)
    one, y, k = jnp.split(solve_lower(factor, columns), [1, 2], axis=1)
    precision, sum_y = jnp.sum(one * one), jnp.sum(one * y)
    missing = 1 - jnp.sum(k * one, axis=0)
    loc = jnp.sum(k * y, axis=0) + missing * sum_y / precision
    spread = jnp.maximum(kernel(task.xt) - jnp.sum(k * k, axis=0), 1e-9) + jnp.square(missing) / precision
    rest = jnp.sum(y * y) - jnp.square(sum_y) / precision
    evidence = -jnp.sum(jnp.log(jnp.diag(factor))) - 0.5 * jnp.log(precision) - 0.5 * (n - 1) * jnp.log(rest)
    return evidence, loc, jnp.sqrt(spread * rest / (n - 1))


def score_sklearn(batch: npax.Task, tasks: GPTask) -> Scores:
    """Amplitude, length scale and noise by maximum marginal likelihood, three starts; the kernel's family is given.

    The fitted noise is taken off the predictive variance: the noiseless function is what is scored.
    """
    shape = Matern(0.3, nu=1.5) if isinstance(tasks.kernel, Matern32Prior) else RBF(0.3)

    def predict(x, y, xt):
        gp = GaussianProcessRegressor(
            ConstantKernel() * shape + WhiteKernel(0.01), n_restarts_optimizer=2, random_state=0
        ).fit(x, y)
        mean, std = gp.predict(xt, return_std=True)
        return mean, np.sqrt(np.maximum(std**2 - gp.kernel_.k2.noise_level, 1e-6))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Predicted variances smaller than 0")
        return _score_each(batch, predict)


def _score_each(batch, predict) -> Scores:
    batch = jax.tree.map(np.asarray, batch)
    rows = []
    for xc, yc, mask, xt, yt in zip(batch.xc, batch.yc, batch.mask_c, batch.xt, batch.yt, strict=True):
        mean, std = predict(xc[mask].astype(float), yc[mask, 0].astype(float), xt.astype(float))
        normal, y = scipy.stats.norm(mean, std), yt[:, 0]
        rows.append((-normal.logpdf(y).mean(), np.square(mean - y).mean(), (abs(normal.cdf(y) - 0.5) < 0.475).mean()))
    return dict(zip(("nll", "squared_error", "covered"), np.array(rows).T, strict=True))


def _row(name, scores, reference):
    n = len(scores["nll"])
    nll, nll_error = mean_and_error(scores["nll"])
    gap, gap_error = mean_and_error(scores["nll"] - reference["nll"][:n])
    coverage, coverage_error = mean_and_error(scores["covered"])
    return {
        "predictor": name,
        "tasks": n,
        "nll": nll,
        "nll_standard_error": nll_error,
        "nll_median": float(np.median(scores["nll"])),
        "gap": gap,
        "gap_standard_error": gap_error,
        "rmse": float(np.sqrt(scores["squared_error"].mean())),
        "coverage": coverage,
        "coverage_standard_error": coverage_error,
    }


def _table(rows):
    header = ["", "tasks", "NLL", "gap to the first row", "median NLL", "RMSE", "95 % coverage"]
    return table(
        header,
        [
            [
                row["predictor"],
                f"{row['tasks']:,}",
                f"{row['nll']:.3f} ± {row['nll_standard_error']:.3f}",
                f"{row['gap']:.3f} ± {row['gap_standard_error']:.3f}",
                f"{row['nll_median']:.3f}",
                f"{row['rmse']:.3f}",
                f"{row['coverage']:.3f} ± {row['coverage_standard_error']:.3f}",
            ]
            for row in rows
        ],
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="gp-universal", help="name of a pretrained model, or a path to weights")
    parser.add_argument("--tasks", type=int, default=2048)
    parser.add_argument("--slow-tasks", type=int, default=128, help="tasks that scikit-learn and the estimator see")
    parser.add_argument("--only", nargs="+", choices=list(SUITES), default=list(SUITES))
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--name", default="gp_accuracy", help="of the result files")
    return parser.parse_args()


if __name__ == "__main__":
    main()
