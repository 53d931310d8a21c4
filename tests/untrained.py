"""Models whose weights numpy draws, for tests that any weights suit: JAX compiles some programs for every shape."""

import math

import equinox as eqx
import jax
import jax.random as jr
import numpy as np

import npax
from npax.likelihoods import FunctionAndNoise

CONSTANTS = {"bias": 0.0, "shift": 0.0, "scale": 1.0}


def untrained(make):
    """The model that `make(key)` describes, with larger weights: its answers vary more than those of a fresh one."""
    rng = np.random.default_rng(0)

    def draw(path, leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        name = getattr(path[-1], "name", None)
        if name in CONSTANTS:
            return jax.device_put(np.full(leaf.shape, CONSTANTS[name], leaf.dtype))
        std = 1.5 / math.prod(leaf.shape[-2:-1]) ** 0.5
        return jax.device_put(rng.normal(0.0, std, leaf.shape).astype(leaf.dtype))

    return jax.tree_util.tree_map_with_path(draw, eqx.filter_eval_shape(lambda: make(jr.key(0))))


def cnp(dx, dy=1):
    """A model that is quick to compile, of the shipped model's likelihood."""
    shape = {"encoder": (16,), "size": 16, "decoder": (16,), "likelihood": FunctionAndNoise(dy)}
    return untrained(lambda key: npax.CNP(dx, dy, **shape, key=key))


def hearing(dx):
    """A model that hears of known errors, of one block."""
    shape = {"blocks": 1, "size": 16, "heads": 2, "head_size": 8, "hidden": 16, "errors": True}
    return untrained(lambda key: npax.TNPKR(dx, 1, likelihood=FunctionAndNoise(1), key=key, **shape))


def small():
    """A small model of the shipped model's kind: three coordinates, translation equivariant."""
    return untrained(
        lambda key: npax.TNPKR(
            3,
            1,
            bias=lambda key: npax.GeometricRBFBias(2, key=key),
            rotary=lambda key: npax.RotaryCoordinates(2, 8, 3, key=key),
            locations=False,
            errors=True,
            likelihood=FunctionAndNoise(1),
            blocks=2,
            size=16,
            heads=2,
            head_size=8,
            hidden=32,
            key=key,
        )
    )


def pictures(dy=1):
    """A small model of pictures."""
    return untrained(
        lambda key: npax.GridConvCNP(
            2, dy, spacing=1.0, sizes=(8, 8), blocks=(1, 1), window=3, likelihood=FunctionAndNoise(dy), key=key
        )
    )
