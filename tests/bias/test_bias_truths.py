"""Each bias against its formula, written in numpy."""

import inspect
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import BIASES, normal
from tinygp import kernels

import npax
from npax.bias import SumBias, distance, squared_distance


@pytest.fixture
def points(getkey):
    return normal(getkey(), (7, 2)), normal(getkey(), (5, 2))


def distances(xq, xk):
    xq, xk = np.asarray(xq, np.float64), np.asarray(xk, np.float64)
    return np.linalg.norm(xq[:, None] - xk[None], axis=-1)


def test_distance_is_euclidean_and_flat_at_zero(points):
    xq, xk = points
    assert reference.relative(jax.jit(distance)(xq, xk), distances(xq, xk)) < 1e-6
    assert reference.relative(jax.jit(squared_distance)(xq, xk), distances(xq, xk) ** 2) < 1e-6
    assert (np.diagonal(jax.jit(distance)(xq, xq)) == 0).all()
    gradient = np.asarray(jax.jit(jax.grad(lambda x: jnp.sum(distance(x, xq))))(xq))
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0


def test_rbf_network_is_the_formula_of_tisa(points, getkey):
    bias = npax.RBFNetworkBias(3, bases=4, key=getkey())
    bias = jax.tree.map(lambda a: a + normal(jr.key(1), a.shape), bias)
    a, b, c = (np.asarray(p, np.float64)[:, :, None, None] for p in (bias.a, bias.b, bias.c))
    true = np.sum(a * np.exp(-np.abs(b) * (distances(*points) - c) ** 2), axis=1)
    assert reference.relative(eqx.filter_jit(bias)(*points), true) < 1e-4


def test_geometric_ladder_is_a_sum_of_squared_exponentials(points, getkey):
    bias = npax.GeometricRBFBias(4, bases=6, sharpness=0.25, key=getkey())
    widths = 0.25 * 4.0 ** np.arange(6)
    bases = np.exp(-widths[:, None, None] * distances(*points) ** 2)
    true = np.einsum("hs,sqk->hqk", np.asarray(bias.a, np.float64), bases)
    assert reference.relative(eqx.filter_jit(bias)(*points), true) < 1e-5


@pytest.mark.parametrize("bias", [npax.RBFNetworkBias, npax.GeometricRBFBias])
def test_bases_start_apart(bias, getkey):
    """Bases that start equal receive equal gradients for ever: every base must have a gradient of its own."""
    bias = bias(2, bases=5, key=getkey())
    xq, xk = normal(getkey(), (20, 2)), normal(getkey(), (20, 2))
    weight = normal(getkey(), (2, 20, 20))
    slopes = jax.jit(jax.grad(lambda bias: jnp.sum(weight * bias(xq, xk))))(bias).a
    for head in np.asarray(slopes):
        gaps = np.abs(head[:, None] - head[None, :])[~np.eye(5, dtype=bool)]
        assert gaps.min() > 1e-3
    assert len(np.unique(np.asarray(bias.a))) == bias.a.size


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.ExpSquared(0.7),
        kernels.Exp(0.5),
        kernels.Matern32(1.3),
        kernels.Matern52(0.4),
        kernels.RationalQuadratic(alpha=1.5),
        kernels.ExpSquared(0.5) * kernels.ExpSineSquared(scale=1.2, gamma=0.8) + 0.3 * kernels.Matern32(2.0),
    ],
    ids=["exp-squared", "exp", "matern-32", "matern-52", "rational-quadratic", "composed"],
)
def test_kernel_bias_is_the_matrix_of_tinygp(kernel, points):
    bias, true = npax.KernelBias([kernel, kernel]), np.asarray(eqx.filter_jit(kernel)(*points))
    assert reference.relative(eqx.filter_jit(bias)(*points)[0], true) < 1e-6
    weighted = eqx.tree_at(lambda b: b.alpha, bias, jnp.array([1.0, -2.5]))
    assert reference.relative(eqx.filter_jit(weighted)(*points)[1], -2.5 * true) < 1e-6


def test_hyper_parameters_of_a_kernel_are_trained(points):
    bias = npax.KernelBias([kernels.ExpSquared(0.7)])
    grads = jax.jit(jax.grad(lambda bias: jnp.sum(bias(*points))))(bias)
    leaves = jax.tree.leaves(grads)
    assert len(leaves) == 2 and all(np.abs(g).sum() > 0 for g in leaves)


def test_numbers_of_a_kernel_have_the_precision_of_others():
    with jax.enable_x64():
        scale = npax.KernelBias([kernels.Matern32(0.1)]).kernels[0].scale
        assert scale.dtype == jnp.float64 and scale == 0.1


def test_whole_numbers_of_a_kernel_stay_as_they_are():
    """The gradient in an exponent is the logarithm of a base that may be negative."""
    bias, x = npax.KernelBias([kernels.Polynomial(order=3, scale=2.0)]), jnp.array([[-1.0], [2.0]])
    value, gradient = jax.jit(jax.value_and_grad(lambda bias: jnp.sum(bias(x, x)), allow_int=True))(bias)
    assert np.isclose(value, sum((a * b / 4) ** 3 for a in (-1, 2) for b in (-1, 2)))
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient) if g.dtype == jnp.float32)
    assert bias.kernels[0].order == 3 and isinstance(bias.kernels[0].order, int)


def test_kernel_bias_needs_kernels():
    with pytest.raises(ValueError, match="`kernels` must be a list of tinygp kernels, one per head; got none"):
        npax.KernelBias([])


def test_causal_forbids_the_future_and_nothing_else():
    xq, xk = jnp.array([[9.0, 0.0], [9.0, 1.0]]), jnp.array([[0.0, -1.0], [0.0, 0.0], [0.0, 0.5], [0.0, 2.0]])
    inf = np.inf
    true = [[0, 0, -inf, -inf], [0, 0, 0, -inf]]
    assert (np.asarray(npax.CausalBias(3)(xq, xk)) == np.array([true] * 3)).all()
    assert (np.asarray(npax.CausalBias(1, column=0)(xq, xk)) == 0).all()


def test_causal_attention_does_not_see_the_future(getkey):
    x = jnp.linspace(0.0, 1.0, 9)[:, None]
    q, k, v = np.asarray(normal(getkey(), (3, 2, 9, 4)))

    @jax.jit
    def read(k, v):
        return npax.dense_attention(jnp.asarray(q), k, v, bias=npax.CausalBias(2), xq=x, xk=x)

    later = (np.arange(9) >= 5)[:, None].astype(np.float32)
    before, after = np.asarray(read(k, v)), np.asarray(read(k + later, v + later))
    assert (before[:, :5] == after[:, :5]).all()
    assert (before[:, 5:] != after[:, 5:]).all()


def test_columns_see_their_columns_only(points, getkey):
    xq, xk = map(np.asarray, points)
    inner = npax.RBFNetworkBias(2, key=getkey())
    bias = eqx.filter_jit(npax.ColumnsBias(inner, (1,)))
    values = np.asarray(bias(xq, xk))
    assert (values == eqx.filter_jit(inner)(xq[:, 1:], xk[:, 1:])).all()
    assert (values == bias(xq * np.float32([np.nan, 1]), xk)).all()


@pytest.mark.parametrize(
    "bias", [npax.CausalBias(1, column=2), npax.ColumnsBias(npax.CausalBias(1), (0, 2)), npax.CausalBias(1, column=-3)]
)
def test_columns_that_are_not_there_are_refused(bias):
    with pytest.raises(ValueError, match=r"no column -?[23]: the locations have 2, counted from 0"):
        bias(jnp.zeros((3, 2)), jnp.zeros((4, 2)))


def test_only_biases_add_up(getkey):
    bias = npax.RBFNetworkBias(1, key=getkey())
    assert sum([bias]) is bias and sum([bias, bias]).parts == (bias, bias)
    for other in (1.0, 1):
        with pytest.raises(TypeError, match="unsupported operand"):
            bias + other
        with pytest.raises(TypeError, match="unsupported operand"):
            other + bias


def test_sums_are_flat_and_associative(points, getkey):
    a, b, c = (BIASES[name](getkey()) for name in ("rbf-network", "geometric", "kernel-stationary"))
    left, right = (a + b) + c, a + (b + c)
    assert isinstance(left, SumBias) and left.parts == right.parts == (a, b, c)
    values = np.asarray(eqx.filter_jit(left)(*points))
    assert (values == eqx.filter_jit(right)(*points)).all()
    assert reference.relative(values, sum(np.asarray(eqx.filter_jit(part)(*points)) for part in (a, b, c))) < 1e-6


def test_arguments_are_checked_when_a_bias_is_made(getkey):
    for wrong in (kernels.ExpSquared(1.0), [1.0]):
        with pytest.raises(TypeError, match="`kernels` must be a list of tinygp kernels"):
            inspect.unwrap(npax.KernelBias.__init__)(None, wrong)
    with pytest.raises(ValueError, match="`heads` must be a whole number, at least 1"):
        npax.CausalBias(0)
    with pytest.raises(ValueError, match="`sharpness` must be positive and finite, got inf"):
        npax.GeometricRBFBias(2, sharpness=np.inf, key=getkey())
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        inspect.unwrap(npax.CausalBias)(2, column=1.5)
    with pytest.raises(ValueError, match="`columns` must name at least one column"):
        npax.bias.ColumnsBias(npax.CausalBias(2), ())
    with pytest.raises(
        TypeError, match=r"`bias` must be an instance of AbstractBias; got .*write `npax.bias.CausalBias\("
    ):
        npax.bias.ColumnsBias.__check_init__(SimpleNamespace(bias=npax.CausalBias, columns=(0,)))
    for make in (npax.RBFNetworkBias, npax.GeometricRBFBias):
        with pytest.raises(ValueError, match="`bases` must be a whole number, at least 1"):
            make(4, bases=0, key=getkey())
        with pytest.raises(ValueError, match="`heads` must be a whole number, at least 1"):
            make(0, key=getkey())


def test_one_column_may_be_a_number(points, getkey):
    bias = npax.RBFNetworkBias(2, key=getkey())
    xq, xk = points
    one, listed = (npax.bias.ColumnsBias(bias, columns) for columns in (0, [0]))
    assert one.columns == listed.columns == (0,)
    assert (one(xq, xk) == listed(xq, xk)).all()
