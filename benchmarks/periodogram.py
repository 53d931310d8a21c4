"""TNP-KR: SA with a bias that depends on the task, on periodic functions: beyond the models of the papers.

    python benchmarks/periodogram.py --steps 1500

A periodic kernel in the bias needs the period, and every task has another: a bias that is the same for all tasks cannot
help. Here the bias of a task is a cosine series along each coordinate, which can be any even function of the
difference, and a network reads its coefficients off the periodogram of the context. Trained and scored as the rows of
`npax bench gp1d`, and set beside them. Writes `results/periodogram.md` and `.json`; a killed run goes on where it was.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from _report import RESULTS, circumstances, table, write_json, write_markdown
from jaxtyping import Array, Bool, Float, PRNGKeyArray

import npax
from npax import bench
from npax.bench.curve import Curve
from npax.bias import AbstractBias, RBFNetworkBias
from npax.blocks import MLP, Linear
from npax.likelihoods import AbstractLikelihood
from npax.models import TNPKR, AbstractConditionalNeuralProcess
from npax.serialise import count_parameters

TERMS = 80
"""Of the series, 1/8 cycles apart: an even function on [-4, 4], where differences lie, is the sum of such cosines."""
FREQUENCIES = 160
"""Of the periodogram, 1/16 cycles apart."""
HEADS = 4
BESIDE = ("bayes_floor", "oracle", "tnp_kr_sa", "tnp_kr_sa_periodic", "convcnp", "tnp_d")


class SeriesBias(AbstractBias):
    r"""$B_h(x_q, x_k) = \mathrm{TISA}_h + \sum_m a_{hm} \cos(2\pi m (x_q - x_k) / 8)$, for one coordinate."""

    network: RBFNetworkBias
    a: Float[Array, "heads terms"]

    def __call__(self, xq, xk):
        q, k = (_waves(x[:, 0], self.a.shape[1], 8) for x in (xq, xk))
        return self.network(xq, xk) + jnp.einsum("qm,hm,km->hqk", q, jnp.tile(self.a, 2), k)


class PeriodogramTNPKR(AbstractConditionalNeuralProcess):
    """TNP-KR: SA whose `SeriesBias` has coefficients of the task's own, in every block and head."""

    inner: TNPKR
    summary: MLP
    out: Linear
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(self, dx: int, dy: int, *, key: PRNGKeyArray):
        inner, summary, out = jr.split(key, 3)
        bias = lambda key: SeriesBias(RBFNetworkBias(HEADS, bases=5, key=key), jnp.zeros((HEADS, TERMS)))  # noqa: E731
        self.inner = TNPKR(dx, dy, bias=bias, key=inner)
        self.summary = MLP([2 * FREQUENCIES + 2, 256, 128, 64], key=summary)
        out = Linear(64, self.inner.blocks * HEADS * TERMS, key=out)
        self.out = eqx.tree_at(lambda m: m.weight, out, 0.3 * out.weight)
        self.likelihood, self.dx, self.dy = self.inner.likelihood, dx, dy

    def condition(self, xc, yc, mask=None) -> Any:
        mask = jnp.ones(xc.shape[0], bool) if mask is None else mask
        x, y = (jnp.where(mask, a[:, 0], 0.0) for a in (xc, yc))
        a = self.out(self.summary(features(x, y, mask)[None]))[0].reshape(self.inner.blocks, HEADS, TERMS)
        return a, self._informed(a).condition(xc, yc, mask)

    def decode(self, state, xt):
        a, memory = state
        return self._informed(a).decode(memory, xt)

    def _informed(self, a):
        return eqx.tree_at(lambda m: m.stack.attention.bias.a, self.inner, a)


def features(x: Float[Array, " n"], y: Float[Array, " n"], mask: Bool[Array, " n"]) -> Float[Array, " size"]:
    r"""What the network reads: for each frequency the share $R^2$ of the variance that a sinusoid explains (the
    periodogram with a floating mean of Zechmeister & Kürster 2009, with a ridge), and $n \log(1 - R^2)$, which grows
    with the evidence; the number of points and their variance. None of them changes when all points move."""
    w = mask.astype(x.dtype)[:, None]
    n = jnp.maximum(jnp.sum(w), 1.0)
    centred = lambda a: w * (a - jnp.sum(w * a, axis=0) / n)  # noqa: E731
    y = centred(y[:, None])[:, 0]
    c, s = jnp.split(centred(_waves(x - jnp.sum(x) / n, FREQUENCIES, 16)), 2, axis=1)
    cc, ss, cs = (jnp.sum(a * b, axis=0) for a, b in ((c, c), (s, s), (c, s)))
    cc, ss = (a + 0.05 * n + 0.1 for a in (cc, ss))
    yc, ys = y @ c, y @ s
    explained = (yc**2 * ss + ys**2 * cc - 2 * yc * ys * cs) / (cc * ss - cs**2)
    total = jnp.sum(y**2) + 0.1
    share = jnp.clip(explained / total, 0.0, 0.999)
    rest = jnp.stack([n / 25 - 1, jnp.log(total / n)])
    return jnp.concatenate([2 * share - 0.5, -0.1 * n * jnp.log1p(-share), rest])


def _waves(x, count, cycles):
    """Cosines, then sines, of 1 to `count` periods in `cycles` units: `[n 2*count]`."""
    phases = x[:, None] * (2 * jnp.pi * jnp.arange(1, count + 1) / cycles)
    return jnp.concatenate([jnp.cos(phases), jnp.sin(phases)], axis=1)


def main() -> None:
    options = _options()
    chosen = bench.gp1d(options.kernel)
    (name, tasks), every = *chosen.evaluations.items(), max(1, options.steps // 8 // 25) * 25
    batch, _ = bench.draw(tasks, options.tasks, 2026)
    folder = options.folder / f"{name}.periodogram.{options.steps}-steps"
    few = jax.tree.map(lambda a: a[:128], batch)
    curve = Curve(folder, tasks, few, every=every, steps=options.steps, seeds=1)
    try:
        fitted = npax.fit(
            lambda key: PeriodogramTNPKR(1, 1, key=key),
            chosen.tasks,
            steps=options.steps,
            key=jr.key(0),
            batch_size=chosen.batch_size,
            checkpoint=folder,
            evaluate=curve.add,
            evaluate_every=every,
            chunk=25,
            progress=True,
        )
    finally:
        curve.save()
    scores = bench.score_model(tasks, batch, fitted.model)
    nll, error = bench.mean_and_error(scores["nll"])
    ours = {"model": "periodogram", "parameters": count_parameters(fitted.model), "seconds": round(curve.seconds)}
    ours |= {"nll": nll, "nll_error": error, "curve": [[step, *nll] for step, nll in curve.points]}
    rows = [*_beside(name, options), ours]
    about = {**circumstances(), "steps": options.steps, "tasks": options.tasks}
    print(
        write_markdown("periodogram", f"A bias that depends on the task: {chosen.title}", _text(rows, options), about)
    )
    write_json("periodogram", {**about, "rows": rows})


def _beside(name, options):
    """The rows of `npax bench` on the same tasks, as far as they are there."""
    kept = ("model", "parameters", "seconds", "nll", "nll_error", "curve")
    for model in BESIDE:
        steps = "" if model in ("bayes_floor", "oracle") else f".{options.steps}-steps.1-seeds"
        path = RESULTS / "bench" / f"{name}.{model}{steps}.{options.tasks}-tasks.jsonl"
        if path.exists():
            row = json.loads(path.read_text().splitlines()[0])
            yield {key: row[key] for key in kept}


def _text(rows, options):
    points = [step for step, _ in rows[-1]["curve"]]
    header = ["", "parameters", "NLL", *(f"after {step}" for step in points)]
    lines = [
        [
            row["model"],
            f"{row['parameters']:,}" if row["parameters"] else "",
            f"{row['nll']:.3f} ± {row['nll_error']:.3f}",
            *(f"{dict(row['curve']).get(step):.3f}" if step in dict(row["curve"]) else "" for step in points),
        ]
        for row in sorted(rows, key=lambda row: row["nll"])
    ]
    return (
        f"NLL per target value on {options.tasks:,} tasks, {options.steps:,} steps of batch 32, one seed, `fit`'s "
        "default optimiser; then on the first 128 of these tasks after so many steps. All but `periodogram` are rows "
        f"of `npax bench gp1d --kernel {options.kernel}`.\n\n" + table(header, lines)
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", choices=["rbf", "matern32", "periodic"], default="periodic")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--tasks", type=int, default=1024)
    parser.add_argument("--folder", type=Path, default=Path("runs/periodogram"), help="of checkpoints")
    return parser.parse_args()


if __name__ == "__main__":
    main()
