"""Factorisations are those of the libraries, with their gradients; two devices never wait for each other."""

import inspect
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from npax.linalg import cholesky, cholesky_with_jitter, solve_lower


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
            for b in (matrix[0], matrix[:, :2], matrix[:, :4].reshape(5, 2, 2), matrix[:, :0]):
                expected = scipy.linalg.solve_triangular(factor, b.reshape(5, b.size // 5), lower=True).reshape(b.shape)
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


def test_second_derivatives_and_those_of_forward_mode_are_those_of_jax(matrices):
    symmetric = np.asarray(matrices)[0]

    def along(value):
        def function(t):
            matrix = symmetric + t[0] * np.eye(5) + t[1] * np.diag(np.arange(5.0))
            return value(matrix)

        return jax.jit(lambda t: (jax.hessian(function)(t), jax.jacrev(jax.grad(function))(t)))(np.zeros(2))

    with jax.enable_x64():
        theirs = value(jnp.linalg.cholesky, lambda L, b: jax.scipy.linalg.solve_triangular(L, b, lower=True))
        expected = along(theirs)[0]
        for factorise in (cholesky, cholesky_with_jitter):
            for found in along(value(factorise, solve_lower)):
                assert np.allclose(found, expected, rtol=1e-7)


def test_systems_of_no_equations_are_solved():
    assert solve_lower(jnp.zeros((0, 0)), jnp.zeros((0, 3))).shape == (0, 3)


def test_numbers_of_two_kinds_are_brought_to_one(matrices):
    with jax.enable_x64(), jax.numpy_dtype_promotion("standard"):
        factor = jax.device_put(np.linalg.cholesky(np.asarray(matrices[0])))
        b = np.arange(10).reshape(5, 2)
        expected = scipy.linalg.solve_triangular(np.asarray(factor), b, lower=True)
        short = jnp.asarray(b, jnp.float32)
        found, slope = jax.value_and_grad(lambda L, b: jnp.sum(solve_lower(L, b)))(factor, short)
        assert np.isclose(found, expected.sum()) and np.isfinite(slope).all()


def test_a_factor_may_vary_over_devices_where_the_right_side_does_not(matrices):
    mesh = jax.make_mesh((1,), ("tasks",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.enable_x64():
        mapped, whole = jax.P("tasks"), jax.P()
        of_each = jax.vmap(lambda a, b: solve_lower(cholesky(a), b), (0, None))
        found = jax.jit(jax.shard_map(of_each, mesh=mesh, in_specs=(mapped, whole), out_specs=mapped))
        b = np.eye(5)[:, :2]
        expected = [scipy.linalg.solve_triangular(np.linalg.cholesky(a), b, lower=True) for a in np.asarray(matrices)]
        assert np.allclose(found(matrices, b), expected)


def test_right_sides_of_another_length_are_refused():
    for b in (jnp.ones(4), jnp.ones((1, 3))):
        with pytest.raises(ValueError, match="`b` must have 3 rows, as `factor` has; got the shape"):
            inspect.unwrap(solve_lower)(jnp.eye(3), b)


def test_batches_are_refused():
    """`vmap` is for them; their gradients would be wrong."""
    solve = inspect.unwrap(solve_lower)
    for function in (cholesky, cholesky_with_jitter, lambda a: solve(a, a[0])):
        with pytest.raises(ValueError, match=r"must have the shape \[n, n\], got \[3, 5, 5\]"):
            inspect.unwrap(function)(np.zeros((3, 5, 5), np.float32))


def test_what_is_not_positive_definite_gives_nan():
    assert np.all(np.isnan(np.asarray(jax.jit(jax.vmap(cholesky))(-np.eye(3, dtype=np.float32)[None]))[:, 0, 0]))


def test_rounding_errors_are_mended_on_the_diagonal_alone():
    """Covariances of nearby points, positive definite but for rounding; beside one that needs nothing."""
    x = np.linspace(0, 1, 60, dtype=np.float32)
    smooth = np.exp(-0.5 * np.square(x[:, None] - x))
    both = np.stack([smooth, smooth + np.eye(60, dtype=np.float32)])
    assert np.isnan(np.asarray(jax.jit(jax.vmap(cholesky))(both)))[0].any()

    def total(matrix):
        factor = cholesky_with_jitter(matrix)
        return jnp.sum(jnp.log(jnp.diagonal(factor))), factor

    gradients, factors = map(np.asarray, jax.jit(jax.vmap(jax.grad(total, has_aux=True)))(both))
    assert np.isfinite(gradients).all() and np.array_equal(factors[1], jax.jit(cholesky)(both[1]))
    mended = factors[0].astype(float) @ factors[0].T.astype(float) - smooth
    assert np.abs(mended - np.diag(np.diag(mended))).max() < 2e-5 and 0 < np.diag(mended).max() < 1e-3


def test_jitter_mends_no_matrix_that_is_wrong():
    broken = np.stack([-np.eye(3, dtype=np.float32), np.full((3, 3), np.inf, np.float32)])
    assert not np.isfinite(np.asarray(jax.jit(jax.vmap(cholesky_with_jitter))(broken))[:, 0, 0]).any()


ON_TWO_DEVICES = """
import jax, jax.numpy as jnp, jax.random as jr, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from npax.linalg import cholesky, cholesky_with_jitter, solve_lower

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
