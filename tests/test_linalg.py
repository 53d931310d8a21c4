"""Factorisations are those of the libraries, with their gradients; two devices never wait for each other."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from npax.linalg import cholesky, solve_lower


@pytest.fixture(scope="module")
def matrices():
    a = np.random.default_rng(0).normal(size=(3, 5, 5))
    with jax.enable_x64():
        yield jax.device_put(a @ a.swapaxes(1, 2) + np.eye(5))


def value(factorise, solve):
    def function(matrix):
        factor = factorise(matrix)
        return jnp.sum(jnp.sin(factor)) + jnp.sum(jnp.cos(solve(factor, matrix[:, :2])))

    return function


def test_factors_and_solutions_are_those_of_scipy(matrices):
    with jax.enable_x64():
        for matrix in np.asarray(matrices):
            factor = np.linalg.cholesky(matrix)
            found = jax.jit(cholesky)(matrix)
            assert np.allclose(found, factor, rtol=1e-12)
            for b in (matrix[0], matrix[:, :2]):
                expected = scipy.linalg.solve_triangular(factor, b, lower=True)
                assert np.allclose(jax.jit(solve_lower)(found, b), expected, rtol=1e-10)


def test_mapped_gradients_are_those_of_jax(matrices):
    """Of symmetric arguments, as JAX takes them: the sum of a gradient and its transpose."""
    with jax.enable_x64():
        ours = value(cholesky, solve_lower)
        theirs = value(jnp.linalg.cholesky, lambda L, b: jax.scipy.linalg.solve_triangular(L, b, lower=True))
        (values, found), (same, expected) = (
            jax.jit(jax.vmap(jax.value_and_grad(function)))(matrices) for function in (ours, theirs)
        )
        assert np.allclose(values, same, rtol=1e-10)
        found, expected = np.asarray(found), np.asarray(expected)
        assert np.allclose(found + found.swapaxes(1, 2), expected + expected.swapaxes(1, 2), rtol=1e-8)


def test_what_is_not_positive_definite_gives_nan():
    assert np.all(np.isnan(np.asarray(jax.jit(jax.vmap(cholesky))(-np.eye(3, dtype=np.float32)[None]))[:, 0, 0]))


ON_TWO_DEVICES = """
import jax, jax.numpy as jnp, jax.random as jr, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from npax.linalg import cholesky, solve_lower

def draw(key):
    a = jr.normal(key[0], (16, 150, 150))
    return jax.vmap(lambda a: solve_lower(cholesky(a @ a.T + 150 * jnp.eye(150)), a))(a)

many = jax.jit(jax.shard_map(draw, mesh=Mesh(np.array(jax.devices()), "d"), in_specs=P("d"), out_specs=P("d")))
for i in range(20):
    print(jnp.isfinite(many(jr.split(jr.key(i), jax.device_count()))).all())
"""


def test_two_devices_factorise_side_by_side():
    """With batches for LAPACK, of either kind, this waits for ever."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "-c", ON_TWO_DEVICES]
    done = subprocess.run(command, env=environment, timeout=120, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 20
