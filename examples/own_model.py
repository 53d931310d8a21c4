"""A model of one's own: neural kriging, whose mean is a weighted sum of what was observed.

    python examples/own_model.py -o own_model.png

Kriging predicts by weights on the observations, which follow from a covariance. Here a network says them: tokens of the
observations and the targets pass a stack of npax's blocks, each target attends to the observations once more, and what
it reads there are the values themselves. Trained on Gaussian processes, saved, loaded again in the manner of any other
model, and handed to the estimator. Two minutes on a CPU core.
"""

import argparse
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import npax
from npax.blocks import MLP, KRBlock, Linear, kr_stack, read_memories, write_memories


class NeuralKriging(npax.models.AbstractConditionalNeuralProcess):
    """The mean of a target is $\\sum_i w_i y_i$, with $w = \\mathrm{softmax}(q k^\\top / \\sqrt d)$ of its token and
    those of the observations; its standard deviation is read off its token.

    `condition` does all that the context alone decides, `decode` gives the numbers that the likelihood reads. Where
    `mask` is `False` nothing may count: neither in the blocks, which are told, nor in our own weights.
    """

    embed: MLP
    stack: KRBlock
    key_of: Linear
    query_of: Linear
    spread: MLP
    likelihood: npax.likelihoods.HeteroscedasticGaussian
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(self, dx, dy, *, size=32, blocks=3, heads=2, key):
        of_embed, of_stack, of_key, of_query, of_spread = jr.split(key, 5)
        self.embed = MLP([dx + dy + 1, 2 * size, size], locations=slice(0, dx), key=of_embed)
        shape = {"heads": heads, "head_size": size // heads, "hidden": 2 * size, "attention": npax.ScanAttention()}
        self.stack = kr_stack(blocks, size, **shape, key=of_stack)
        self.key_of = Linear(size, size, use_bias=False, key=of_key)
        self.query_of = Linear(size, size, use_bias=False, key=of_query)
        self.spread = MLP([size, size, dy], key=of_spread)
        self.likelihood = npax.likelihoods.HeteroscedasticGaussian(dy)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None):
        mask = jnp.ones(len(xc), bool) if mask is None else mask
        xc, yc = jnp.where(mask[:, None], xc, 0.0), jnp.where(mask[:, None], yc, 0.0)
        zc = self.embed(jnp.concatenate([xc, yc, jnp.ones_like(xc[:, :1])], axis=1))
        return write_memories(self.stack, zc, xc, mask), self.key_of(zc), yc, mask

    def decode(self, state, xt):
        memories, keys, yc, mask = state
        zt = self.embed(jnp.concatenate([xt, jnp.zeros((len(xt), self.dy + 1))], axis=1))
        zt = read_memories(self.stack, memories, zt, xt)
        logits = self.query_of(zt) @ keys.T / jnp.sqrt(float(keys.shape[1]))
        weights = jax.nn.softmax(logits, where=mask, axis=1) if len(yc) else logits  # of none: zeros
        return jnp.concatenate([weights @ yc, self.spread(zt)], axis=1)


def draw(model, task, path):
    """What the estimator says of one task with the model: any of its columns, units and missing values will do."""
    seen = np.asarray(task.mask_c)
    reg = npax.NeuralProcessRegressor(model=model, normalize=False).fit(task.xc[seen], task.yc[seen, 0])
    x = np.linspace(-2, 2, 400)[:, None]
    mean, std = reg.predict(x, return_std=True)
    figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
    npax.plot.posterior(ax, x, mean, std, context=(task.xc[seen], task.yc[seen]))
    figure.savefig(path, dpi=150)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("-o", "--output", default="own_model.png")
    options = parser.parse_args()
    npax.devices.one_device_per_core()
    tasks = npax.tasks.gp_1d(npax.tasks.RBFPrior())
    model = npax.fit(NeuralKriging(1, 1, key=jr.key(0)), tasks, steps=options.steps, key=jr.key(1)).model

    with tempfile.TemporaryDirectory() as folder:
        npax.save(Path(folder) / "own.safetensors", model)
        model = npax.load(Path(folder) / "own.safetensors", [NeuralKriging])

    fresh, _ = npax.bench.draw(tasks, 256, seed=2)
    nll, error = npax.bench.mean_and_error(npax.bench.score_model(tasks, fresh, model)["nll"])
    print(f"NLL of a target in 256 fresh tasks: {nll:.3f} ± {error:.3f}")
    draw(model, jax.tree.map(lambda a: a[0], fresh), options.output)


if __name__ == "__main__":
    main()
