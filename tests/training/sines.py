"""A training small enough to be run many times: sines, and the smallest model."""

import hashlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import Array

import npax
from npax.tasks import AbstractTasks


class Sines(AbstractTasks):
    """y = 0.1 sin(3 x + phase) at 6 context points and 5 targets; NaN in a share `broken` of the tasks."""

    broken: Array

    def __init__(self, broken=0.0):
        self.broken = jnp.array(broken)

    def sample(self, key):
        phase_key, x_key, broken_key = jr.split(key, 3)
        x = jr.uniform(x_key, (11, 1), minval=-2.0, maxval=2.0)
        y = 0.1 * jnp.sin(3 * x + 6 * jr.uniform(phase_key))
        y = jnp.where(jr.bernoulli(broken_key, self.broken), jnp.nan, y)
        return npax.Task.of(x[:6], y[:6], x[6:], y[6:])


def tiny(key):
    return npax.CNP(1, 1, encoder=(16,), size=16, decoder=(16,), key=key)


def train(steps=24, **options):
    options = {"key": jr.key(3), "batch_size": 4, "chunk": 2, "progress": False, **options}
    return npax.fit(options.pop("model", tiny), options.pop("tasks", Sines()), steps=steps, **options)


def fingerprint(model):
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_array))
    return hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in leaves)).hexdigest()
