"""The members of each family, listed once: every law runs over all of them."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import Array
from jax.extend.core import Literal
from tinygp import kernels

import npax
from npax.likelihoods import Categorical, FunctionAndNoise, HomoscedasticGaussian

HEADS = 2

BIASES = {
    "rbf-network": lambda key: npax.RBFNetworkBias(HEADS, bases=3, key=key),
    "geometric": lambda key: npax.GeometricRBFBias(HEADS, bases=4, key=key),
    "kernel-stationary": lambda key: npax.KernelBias([kernels.ExpSquared(0.7), kernels.Matern32(1.3)]),
    "kernel-composed": lambda key: npax.KernelBias(
        [
            kernels.ExpSquared(0.5) * kernels.ExpSineSquared(scale=1.0, gamma=0.8),
            2.0 * kernels.Matern52(0.9) + kernels.Exp(0.4),
        ]
    ),
    "causal": lambda key: npax.CausalBias(HEADS),
    "columns": lambda key: npax.ColumnsBias(npax.RBFNetworkBias(HEADS, bases=2, key=key), (1,)),
    "sum": lambda key: (
        npax.ColumnsBias(npax.GeometricRBFBias(HEADS, bases=2, key=key), (0,))
        + npax.RBFNetworkBias(HEADS, bases=2, key=jr.fold_in(key, 1))
        + npax.CausalBias(HEADS, column=1)
    ),
}
"""Functions of a key; two heads, two columns of `x`."""

TINY = {"blocks": 2, "size": 16, "heads": HEADS, "head_size": 8, "hidden": 32}


def rotary(dx):
    return lambda key: npax.RotaryCoordinates(HEADS, 8, dx, high=8.0, key=key)


def favor(turned):
    return lambda key: npax.FavorAttention(8, features=8, rotary=rotary(2)(key) if turned else None, key=key)


def deep_kernel(turned):
    return lambda key: npax.DeepKernelAttention(
        TINY["size"],
        2,
        features=8,
        hidden=8,
        rotary=npax.RotaryCoordinates(1, 8, 2, high=8.0, key=key) if turned else None,
        key=key,
    )


MODELS = {
    "cnp": lambda key: npax.CNP(2, 1, encoder=(16,), size=16, decoder=(16,), key=key),
    "canp": lambda key: npax.CNP(
        2,
        1,
        encoder=(16,),
        size=16,
        decoder=(16,),
        attention=npax.MultiHeadAttention(2, 16, heads=2, key=key),
        layers=1,
        heads=2,
        key=key,
    ),
    "canp-dot": lambda key: npax.CNP(
        1, 2, encoder=(16,), size=16, decoder=(16,), attention=npax.DotProductAttention(1, 8, key=key), key=key
    ),
    "np": lambda key: npax.NP(2, 1, encoder=(16,), size=16, latent=4, decoder=(16,), key=key),
    "anp-laplace": lambda key: npax.NP(
        2,
        2,
        encoder=(16,),
        size=16,
        latent=4,
        decoder=(16,),
        attention=npax.LaplaceAttention(0.5),
        layers=1,
        heads=2,
        key=key,
    ),
    "bnp": lambda key: npax.BNP(2, 1, encoder=(16,), size=16, decoder=(16,), key=key),
    "banp": lambda key: npax.BNP(
        1, 2, encoder=(16,), size=16, decoder=(16,), attention=npax.MultiHeadAttention(1, 16, heads=2, key=key), key=key
    ),
    "convcnp": lambda key: npax.ConvCNP(
        1, 2, spacing=1 / 4, extent=10.0, blocks=(1, 1, 1, 1), size=8, hidden=16, key=key
    ),
    "convcnp-2d": lambda key: npax.ConvCNP(
        2, 1, spacing=1 / 2, extent=10.0, blocks=(1, 1, 2), size=8, hidden=16, window=3, key=key
    ),
    "grid-convcnp": lambda key: npax.GridConvCNP(
        2, 1, spacing=1 / 2, extent=10.0, sizes=(8, 8, 12), blocks=(1, 1, 1), window=3, key=key
    ),
    "grid-convcnp-1d": lambda key: npax.GridConvCNP(
        1, 2, spacing=1 / 4, extent=10.0, sizes=(8, 12), blocks=(1, 2), key=key
    ),
    "rcnp": lambda key: npax.RCNP(2, 2, encoder=(16,), size=16, decoder=(16,), block=8, key=key),
    "tnp-d": lambda key: npax.TNPD(2, 1, **TINY, key=key),
    "tnp-nd": lambda key: npax.TNPND(2, 2, rank=3, **TINY, key=key),
    "tnp-a": lambda key: npax.TNPA(2, 1, **TINY, key=key),
    "eqtnp": lambda key: npax.EQTNP(1, 2, attention=npax.ScanAttention(block=8), **TINY, key=key),
    "lbanp": lambda key: npax.LBANP(2, 1, pseudo_tokens=5, **TINY, key=key),
    "pt-tnp": lambda key: npax.PTTNP(1, 2, pseudo_tokens=5, **TINY, key=key),
    "te-tnp": lambda key: npax.TETNP(2, 1, **TINY, key=key),
    "te-tnp-still": lambda key: npax.TETNP(1, 2, update_locations=False, block=64, **TINY, key=key),
    "te-pt-tnp": lambda key: npax.TEPTTNP(1, 2, pseudo_tokens=5, **TINY, key=key),
    "te-pt-tnp-still": lambda key: npax.TEPTTNP(2, 1, pseudo_tokens=5, update_locations=False, **TINY, key=key),
    "locations": lambda key: npax.TNPKR(2, 1, bias=BIASES["rbf-network"], **TINY, key=key),
    "invariant": lambda key: npax.TNPKR(
        2, 2, errors=True, bias=BIASES["rbf-network"], locations=False, attention=npax.DenseAttention(), **TINY, key=key
    ),
    "universal": lambda key: npax.TNPKR(
        3,
        1,
        errors=True,
        bias=BIASES["geometric"],
        rotary=rotary(3),
        locations=False,
        likelihood=FunctionAndNoise(1),
        attention=npax.ScanAttention(block=8),
        **TINY,
        key=key,
    ),
    "perf": lambda key: npax.TNPKR(2, 1, attention=favor(False), **TINY, key=key),
    "perf-rotary": lambda key: npax.TNPKR(2, 1, attention=favor(True), locations=False, **TINY, key=key),
    "dka": lambda key: npax.TNPKR(2, 2, attention=deep_kernel(False), **TINY, key=key),
    "dka-rotary": lambda key: npax.TNPKR(2, 1, attention=deep_kernel(True), locations=False, **TINY, key=key),
    "rotary-alone": lambda key: npax.TNPKR(1, 1, rotary=rotary(1), locations=False, **{**TINY, "blocks": 1}, key=key),
    "spectral": lambda key: npax.SpectralTNPKR(
        2, 2, bias=BIASES["rbf-network"], terms=3, frequencies=5, summary=(8,), **TINY, key=key
    ),
    "classes": lambda key: npax.TNPKR(
        2, 3, bias=BIASES["geometric"], locations=False, likelihood=Categorical(3), **TINY, key=key
    ),
    "np-classes": lambda key: npax.NP(
        2, 3, encoder=(16,), size=16, latent=4, decoder=(16,), likelihood=Categorical(3), key=key
    ),
    "no-bias": lambda key: npax.TNPKR(1, 1, likelihood=HomoscedasticGaussian(1), **TINY, key=key),
    "symmetrised": lambda key: npax.Symmetrised(
        npax.TNPKR(
            2,
            1,
            errors=True,
            bias=BIASES["geometric"],
            rotary=rotary(2),
            locations=False,
            likelihood=FunctionAndNoise(1),
            **TINY,
            key=key,
        )
    ),
    "kernel": lambda key: npax.TNPKR(
        2,
        1,
        bias=BIASES["kernel-composed"](key),
        locations=False,
        attention=npax.ScanAttention(block=8),
        **TINY,
        key=key,
    ),
}
"""Functions of a key: tiny models that differ in everything a user chooses."""

EQUIVARIANT = {
    "convcnp",
    "convcnp-2d",
    "grid-convcnp",
    "grid-convcnp-1d",
    "rcnp",
    "invariant",
    "universal",
    "rotary-alone",
    "spectral",
    "perf-rotary",
    "dka-rotary",
    "kernel",
    "classes",
    "te-tnp",
    "te-tnp-still",
    "te-pt-tnp",
    "te-pt-tnp-still",
    "symmetrised",
}
"""The models that promise translation equivariance."""


def normal(key, shape):
    """Standard normal numbers, drawn by numpy: `jax.random.normal` would be compiled anew for each shape."""
    rng = np.random.default_rng(np.asarray(jr.key_data(key)))
    return jax.device_put(rng.standard_normal(shape, np.float32))


class Data(NamedTuple):
    xc: Array
    yc: Array
    xt: Array
    mask: Array
    error: Array | None = None


def on_lattice(key, shape):
    return jax.device_put(np.round(64 * np.asarray(normal(key, shape))) / 64)


def draw_data(model, key, nc=20, nt=9):
    """Points on a lattice of 1/64, whose differences and modest shifts are exact in float32."""
    keys = jr.split(key, 3)
    xc, xt = (on_lattice(k, (n, model.dx)) for k, n in zip(keys[:2], (nc, nt), strict=True))
    return Data(xc, normal(keys[2], (nc, model.dy)), xt, jax.device_put(np.ones(nc, bool)))


def evaluate(model, data):
    """Mean and variance at the targets, and the gradients of the likelihood of ones in model and data; in numpy."""
    return jax.device_get(_evaluate(model, jax.device_put(data)))


@eqx.filter_jit
def _evaluate(model, data):
    def log_likelihood(operands):
        model, data = operands
        d = model(data.xc, data.yc, data.xt, data.mask, data.error)
        return jnp.sum(d.log_prob(jnp.ones((data.xt.shape[0], model.dy)))), (d.mean, d.variance)

    (_, moments), gradients = eqx.filter_value_and_grad(log_likelihood, has_aux=True)((model, data))
    return moments, gradients


@eqx.filter_jit
def moments(model, data):
    """Mean and variance at the targets."""
    d = model(data.xc, data.yc, data.xt, data.mask)
    return d.mean, d.variance


def step_by_step(function, *args):
    """What the function gives where XLA simplifies no operation together with others and no loop is left to it.

    In one program, with a barrier after each operation: a program for each, as `jax.disable_jit` alone has it, takes
    five to ten times as long to compile."""
    with jax.disable_jit():
        program, out, _ = eqx.filter_make_jaxpr(function)(*args)

    def steps(program, consts, *operands):
        known = dict(zip(program.constvars + program.invars, [*consts, *operands], strict=True))
        read = lambda a: a.val if isinstance(a, Literal) else known[a]  # noqa: E731
        for step in program.eqns:
            operands = map(read, step.invars)
            if "call_jaxpr" in step.params:  # a function with derivatives of its own
                results = steps(step.params["call_jaxpr"].jaxpr, step.params["call_jaxpr"].consts, *operands)
            else:
                results = step.primitive.bind(*operands, **step.params)
                results = results if step.primitive.multiple_results else [results]
            known.update(zip(step.outvars, jax.lax.optimization_barrier(results), strict=True))
        return [read(a) for a in program.outvars]

    operands = jax.tree.leaves(eqx.filter(args, eqx.is_array))
    return jax.tree.unflatten(
        jax.tree.structure(out), jax.jit(steps, static_argnums=0)(program.jaxpr, program.consts, *operands)
    )


def close(a, b, tolerance=2e-5):
    """All arrays of two trees agree, in units of the largest entry of each (of 1, where all are smaller)."""
    pairs = zip(*(map(np.asarray, jax.tree.leaves(tree)) for tree in (a, b)), strict=True)
    return all(np.abs(x - y).max(initial=0) <= tolerance * np.abs(y).max(initial=1) for x, y in pairs)


def same(a, b):
    """Two trees of one structure hold the same: arrays of one type in every bit, all else by `==`."""

    def equal(x, y):
        if not isinstance(x, jax.Array | np.ndarray):
            return x == y
        return x.dtype == y.dtype and np.array_equal(np.asarray(x), np.asarray(y))

    return jax.tree.structure(a) == jax.tree.structure(b) and all(jax.tree.leaves(jax.tree.map(equal, a, b)))


def finite(tree):
    return all(np.isfinite(np.asarray(a)).all() for a in jax.tree.leaves(tree))
