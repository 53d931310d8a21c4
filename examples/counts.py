"""Weekly cases with gaps: a likelihood of counts and tasks of one's own.

    python examples/counts.py -o counts.png

The rate of cases is the exponential of a smooth random function; what is reported are counts that vary more than
Poisson's. A small TNP-KR learns to say, from the weeks that were reported, how many cases there were in the others. The
score beside it is that of one negative binomial for all weeks of a task, fitted to those that were reported. Two
minutes on a CPU core.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
from tinygp import kernels

import npax
from npax.linalg import cholesky

WEEKS = 100
REPORTED = 50
"""Weeks that are reported, at most; the others are asked for."""


class NegativeBinomial(npax.likelihoods.AbstractLikelihood):
    """Counts: the network gives the logarithms of their mean and of their concentration."""

    dy: int = eqx.field(static=True, default=1)

    @property
    def size(self):
        return 2 * self.dy

    def __call__(self, raw):
        mean, concentration = jnp.split(jnp.exp(jnp.clip(raw, -6.0, 6.0)), 2, axis=-1)
        return dist.NegativeBinomial2(mean, concentration).to_event(1)


class Cases(npax.tasks.AbstractTasks):
    """Two years of cases: their rate is smooth over 1/20 to 1/2 of the time, their level from 1 to 20."""

    def sample(self, key):
        of_level, of_scale, of_rate, of_counts, of_order, of_size = jr.split(key, 6)
        weeks = jnp.linspace(-2.0, 2.0, WEEKS)[:, None]
        kernel = kernels.Matern52(jnp.exp(jr.uniform(of_scale, minval=jnp.log(0.2), maxval=jnp.log(2.0))))
        smooth = cholesky(kernel(weeks, weeks) + 1e-4 * jnp.eye(WEEKS)) @ jr.normal(of_rate, (WEEKS, 1))
        rate = jnp.exp(jr.uniform(of_level, maxval=3.0) + smooth)
        cases = dist.NegativeBinomial2(rate, 10.0).sample(of_counts).astype(jnp.float32)
        order = jr.permutation(of_order, WEEKS)
        context, targets = order[:REPORTED], order[REPORTED:]
        reported = jnp.arange(REPORTED) < jr.randint(of_size, (), 5, REPORTED + 1)
        everywhere = jnp.ones(WEEKS - REPORTED, bool)
        return npax.Task(weeks[context], cases[context], reported, weeks[targets], cases[targets], everywhere)


def score(model, tasks):
    """Negative log-likelihood of a count, averaged over tasks, and what one distribution for all weeks has."""

    def one(task):
        found = model(task.xc, task.yc, task.xt, task.mask_c).log_prob(task.yt).mean()
        mean = jnp.mean(task.yc, where=task.mask_c[:, None])
        excess = jnp.maximum(jnp.var(task.yc, where=task.mask_c[:, None]) - mean, 0.01 * mean + 0.01)
        same = dist.NegativeBinomial2(mean + 0.01, jnp.square(mean + 0.01) / excess)
        return found, same.log_prob(task.yt).mean()

    return [-float(scores.mean()) for scores in eqx.filter_jit(jax.vmap(one))(tasks)]


def draw(model, task, path):
    """The reported weeks, the others, and the interval that the model gives for each week."""
    weeks = jnp.linspace(-2.0, 2.0, WEEKS)[:, None]

    @eqx.filter_jit
    def predict(model):
        found = model(task.xc, task.yc, weeks, task.mask_c)
        return found.mean[:, 0], found.sample(jr.key(0), (4000,))[..., 0]

    mean, draws = map(np.asarray, predict(model))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    number = np.arange(WEEKS)
    at = [np.round((np.asarray(x[:, 0]) + 2) / 4 * (WEEKS - 1)) for x in (task.xc[task.mask_c], task.xt)]
    figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
    ax.fill_between(number, low, high, step="mid", alpha=0.25, label="95 % of counts")
    ax.step(number, mean, where="mid", label="mean")
    ax.plot(at[0], task.yc[task.mask_c], "k.", label="reported")
    ax.plot(at[1], task.yt, ".", color="0.6", label="not reported")
    ax.set(xlabel="week", ylabel="cases")
    ax.legend(frameon=False, ncols=4)
    figure.savefig(path, dpi=150)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("-o", "--output", default="counts.png")
    options = parser.parse_args()
    npax.devices.one_device_per_core()
    of_model, of_training, of_tasks = jr.split(jr.key(0), 3)
    model = npax.TNPKR(
        1,
        1,
        bias=lambda key: npax.RBFNetworkBias(4, bases=5, key=key),
        likelihood=NegativeBinomial(),
        blocks=3,
        size=32,
        head_size=16,
        hidden=128,
        key=of_model,
    )
    model = npax.fit(model, Cases(), steps=options.steps, key=of_training).model
    tasks = jax.vmap(Cases().sample)(jr.split(of_tasks, 256))
    found, same = score(model, tasks)
    print(f"NLL of a count on 256 fresh tasks: {found:.3f}; one distribution for all weeks of a task: {same:.3f}")
    draw(model, jax.tree.map(lambda a: a[1], tasks), options.output)


if __name__ == "__main__":
    main()
