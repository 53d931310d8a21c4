"""Cholesky factors and triangular systems, safe to map over tasks on several CPU devices."""

import math

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Float

TRIALS = 8
"""Of a Cholesky factor, each with more on the diagonal."""
LEAST = 256
"""Spacings of floats that the first of them adds."""


def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower Cholesky factor; NaN where the matrix is not positive definite.

    Under `vmap` CPUs factorise one matrix after another: jaxlib (0.10) shares a batch of them among the threads of
    its pool, and two such batches at once, of two devices or of one program, can wait for each other's threads for
    ever. For batches of the size of training it costs nothing: one matrix fills a core.
    """
    return _cholesky(_square(matrix))


def cholesky_with_jitter(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower Cholesky factor of a matrix that is positive definite but for rounding errors.

    The diagonal grows by a share of itself, first 0, then 256 spacings of floats and four times as much at each further
    trial, until the factor is finite. (The share does not go by n: rows of padding change nothing.) At most 8 trials: a
    matrix that is far from positive definite, or not finite itself, has a factor that is not finite.
    """
    return _cholesky_with_jitter(_square(matrix))


def solve_lower(factor: Float[Array, "n n"], b: Float[Array, "n *m"]) -> Float[Array, "n *m"]:
    r"""$L^{-1} b$ for a lower triangular factor; one system after another, as `cholesky`."""
    _square(factor)
    if not b.ndim or len(b) != len(factor):
        raise ValueError(f"`b` must have {len(factor)} rows, as `factor` has; got the shape {[*b.shape]}.")
    kind = jnp.result_type(factor, b)
    columns = b.reshape(len(b), math.prod(b.shape[1:])).astype(kind)
    # Zeros that vary over devices where the factor does: a solution that varies must be one of what does.
    columns = columns + jnp.where(False, jnp.diagonal(factor)[:, None].astype(kind), 0)
    return _solve(factor.astype(kind), columns).reshape(b.shape)


def _square(matrix):
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A matrix must have the shape [n, n], got {[*matrix.shape]}: batches are `jax.vmap`.")
    return matrix


@jax.custom_jvp
def _cholesky(matrix):
    return _one_by_one_cholesky(matrix)


@jax.custom_jvp
def _cholesky_with_jitter(matrix):
    least = jnp.diag(jnp.diagonal(matrix)) * (LEAST * float(jnp.finfo(matrix.dtype).eps))

    def failed(state):
        trial, _, factor = state
        return ~jnp.all(jnp.isfinite(factor)) & (trial < TRIALS)

    def again(state):
        trial, jitter, _ = state
        return trial + 1, 4 * jitter, _one_by_one_cholesky(matrix + jitter)

    return jax.lax.while_loop(failed, again, (1, least, _one_by_one_cholesky(matrix)))[-1]


def _tangent(factor, d_matrix):
    r"""$\dot L = L\, \Phi(L^{-1} \dot A L^{-\top})$; $\Phi$: the lower part, its diagonal halved."""
    inner = _solve(factor, _solve(factor, 0.5 * (d_matrix + d_matrix.T)).T)
    return factor @ (jnp.tril(inner) - 0.5 * jnp.diag(jnp.diagonal(inner)))


@_cholesky.defjvp
def _cholesky_jvp(primals, tangents):
    factor = _cholesky(*primals)
    return factor, _tangent(factor, *tangents)


@_cholesky_with_jitter.defjvp
def _cholesky_with_jitter_jvp(primals, tangents):
    factor = _cholesky_with_jitter(*primals)
    return factor, _tangent(factor, *tangents)


def _solve(factor, b):
    lower = jnp.tril(factor)
    return jax.lax.custom_linear_solve(
        lambda x: lower @ x,
        b,
        solve=lambda _, b: _one_by_one_solve(factor, b),
        transpose_solve=lambda _, b: _one_by_one_transposed(factor, b),
    )


def _solve_triangular(factor, b):
    return jax.scipy.linalg.solve_triangular(factor, b, lower=True)


def _solve_transposed(factor, b):
    return jax.scipy.linalg.solve_triangular(factor, b, lower=True, trans="T")


def _sequential_on_cpu(function):
    """`function`, mapped over batches one by one on CPUs and all at once elsewhere."""
    one = sequential_vmap(function)
    return lambda *arrays: jax.lax.platform_dependent(*arrays, cpu=one, default=function)


_one_by_one_cholesky = _sequential_on_cpu(jnp.linalg.cholesky)
_one_by_one_solve = _sequential_on_cpu(_solve_triangular)
_one_by_one_transposed = _sequential_on_cpu(_solve_transposed)
