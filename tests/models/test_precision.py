"""Weights and data of different precision: gradients as `fit` takes them have the precision of the weights."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import MODELS

import npax
from npax.attention.translation_equivariant import translation_equivariant_attention
from npax.blocks import standardise
from npax.blocks.set_conv import Grid
from npax.matmul import summed_over_tasks
from npax.models import TNPA
from npax.models.tnp_kr_spectral import periodogram
from npax.objectives import nll, suited
from npax.task import Task


@functools.cache
def drawn(name):
    """A model of float32, drawn outside of x64: there every array of random numbers takes programs of its own."""
    return MODELS[name](jr.key(0))


def cast(tree, dtype):
    """By NumPy: JAX compiles a program for every shape."""
    to = jnp.dtype(dtype)
    return jax.tree.map(lambda a: jnp.asarray(np.asarray(a).astype(to)) if eqx.is_inexact_array(a) else a, tree)


def finite(a):
    return np.isfinite(np.asarray(a)).all()


@eqx.filter_grad
def gradient(model, tasks):
    with summed_over_tasks():
        loss = eqx.filter_vmap(suited(model), in_axes=(None, 0, 0))
        return jnp.mean(loss(model, tasks, jr.split(jr.key(0), 2)))


@pytest.mark.parametrize(("weights", "data"), [("bfloat16", "float32"), ("float32", "float64")])
@pytest.mark.parametrize("name", ["anp-laplace", "convcnp", "tnp-a", "te-pt-tnp", "symmetrised"])
def test_gradients_have_the_precision_of_the_weights(name, weights, data, rng):
    """And those of short numbers are finite: that those of long ones are is a law of all models."""
    model = drawn(name)
    with jax.enable_x64(data == "float64"), jax.numpy_dtype_promotion("standard"):
        model = cast(model, weights)
        dy = model.likelihood.dy
        shapes = [(2, 5, model.dx), (2, 5, dy), (2, 7, model.dx), (2, 7, dy)]
        tasks = eqx.filter_vmap(Task.of)(*(jnp.asarray(rng.normal(size=shape), data) for shape in shapes))
        short = weights == "bfloat16"
        found = eqx.filter_jit(gradient)(model, tasks) if short else eqx.filter_eval_shape(gradient, model, tasks)
        wanted = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
        for got, weight in zip(jax.tree.leaves(found), wanted, strict=True):
            assert got.dtype == weight.dtype and (not short or finite(got))


@pytest.mark.parametrize("name", ["tnp-nd", "np"])
def test_models_of_short_numbers_are_trained(name, rng):
    """Covariances of joint predictions are those of float32; a latent variable has the precision of the model."""
    with jax.numpy_dtype_promotion("standard"):
        model = cast(drawn(name), "bfloat16")
        dy = model.likelihood.dy
        shapes = [(5, model.dx), (5, dy), (7, model.dx), (7, dy)]
        task = cast(Task.of(*(rng.normal(size=shape) for shape in shapes)), "bfloat16")
        value, found = eqx.filter_jit(eqx.filter_value_and_grad(suited(model)))(model, task, jr.key(0))
    assert finite(value)
    for gradient in jax.tree.leaves(found):
        assert gradient.dtype == jnp.bfloat16 and finite(gradient)


@pytest.mark.parametrize("data", [("float32", "float64"), ("float64", "float32")])
@pytest.mark.parametrize("name", ["lbanp", "rcnp", "te-pt-tnp", "locations"])
def test_data_of_any_precision_is_predicted_from(name, data, rng):
    """Locations of one and values of another, with weights of float32."""
    model = drawn(name)
    with jax.enable_x64(), jax.numpy_dtype_promotion("standard"):
        model = cast(model, "float32")
        sizes = model.dx, model.likelihood.dy
        x, y = (jnp.asarray(rng.normal(size=(5, n)), dtype) for n, dtype in zip(sizes, data, strict=True))
        found = eqx.filter_jit(lambda model, x, y: model.predict(model.condition(x, y), x).mean)(model, x, y)
        assert finite(found)


def test_samples_are_drawn_in_x64(rng):
    model = drawn("locations")
    with jax.enable_x64(), jax.numpy_dtype_promotion("standard"):
        model = cast(model, "float32")
        x, y = rng.normal(size=(5, model.dx)), rng.normal(size=(5, 1))
        assert np.isfinite(npax.sample(model, x, y, x[:2], 2, key=jr.key(0))).all()


@pytest.mark.parametrize("name", ["convcnp", "rcnp", "te-tnp", "locations"])
def test_whole_numbers_are_numbers(name):
    model = drawn(name)
    x = np.stack([np.arange(-2, 3)] * model.dx, axis=1)
    y = np.stack([np.arange(5)] * model.likelihood.dy, axis=1)

    @eqx.filter_jit
    def mean(model, x, y):
        return model.predict(model.condition(x, y), x[:4]).mean

    wanted = mean(model, x.astype(np.float32), y.astype(np.float32))
    assert np.allclose(mean(model, x, y), wanted, atol=1e-5)


@pytest.mark.parametrize("name", ["cnp", "np", "bnp", "rcnp", "tnp-a"])
def test_no_targets_have_no_loss(name, rng):
    model = drawn(name)
    x, y = (jnp.asarray(rng.normal(size=(5, n)), jnp.float32) for n in (model.dx, model.likelihood.dy))
    task = Task.of(x, y, x[:0], y[:0])
    assert float(eqx.filter_jit(nll)(model, task)) == 0
    assert np.isfinite(float(eqx.filter_jit(suited(model))(model, task, jr.key(0))))


@pytest.mark.parametrize(("kind", "n"), [("bfloat16", 6000), ("float16", 70_000)])
@pytest.mark.parametrize("model", ["cnp", "rcnp"])
def test_sums_over_many_are_as_exact_as_those_over_few(model, kind, n, rng):
    """One in bfloat16 stops to grow, one in float16 overflows."""
    model = cast(drawn(model), kind)
    x, y = (jnp.asarray(rng.normal(size=(n, m)), kind) for m in (model.dx, model.likelihood.dy))
    y = y.astype("float32").at[:, 0].add(2.0).astype(kind)
    mean = eqx.filter_jit(lambda model, x, y: model(x, y, x[:3]).mean)
    with jax.numpy_dtype_promotion("standard"):
        short, exact = mean(model, x, y), mean(*cast((cast(model, kind), x, y), "float32"))
    error = np.abs(np.asarray(short, float) - np.asarray(exact, float)).max()
    assert error < 10 * float(jnp.finfo(kind).eps) * np.abs(exact).max()


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_the_spectrum_of_many_points_is_that_of_float32(kind):
    x = jnp.linspace(-2, 2, 300)[:, None].astype(kind)
    y = jnp.sin(5 * x.astype("float32")).astype(kind)
    read = eqx.filter_jit(lambda *of: periodogram(*of, jnp.ones(300, bool), length=10.0, frequencies=30))
    short, exact = read(x, y), read(x.astype("float32"), y.astype("float32"))
    assert short.dtype == kind
    assert np.abs(np.asarray(short, float) - np.asarray(exact, float)).max() < 4 * float(jnp.finfo(kind).eps)


@pytest.mark.parametrize("name", ["convcnp", "grid-convcnp"])
def test_convolutions_have_gradients_in_float16(name, rng):
    model = drawn(name)
    shapes = [(5, model.dx), (5, model.likelihood.dy), (4, model.dx), (4, model.likelihood.dy)]
    task = Task.of(*(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes))
    gradient = eqx.filter_jit(eqx.filter_grad(lambda both: nll(*both)))
    with jax.numpy_dtype_promotion("standard"):
        short, exact = gradient(cast((model, task), "float16")), gradient((model, task))
    largest = max(np.abs(g).max() for g in jax.tree.leaves(exact))
    for found, true in zip(*map(jax.tree.leaves, (short, exact)), strict=True):
        assert np.abs(np.asarray(found, float) - np.asarray(true, float)).max() < 0.05 * largest


def test_the_bootstrap_in_x64():
    model = drawn("bnp")
    with jax.enable_x64(), jax.numpy_dtype_promotion("strict"):
        model = cast(model, "float64")
        x, y = (jax.ShapeDtypeStruct((5, n), np.float64) for n in (model.dx, model.likelihood.dy))
        assert eqx.filter_eval_shape(lambda x, y: model(x, y, x).mean, x, y).dtype == np.float64


def test_norms_of_large_numbers_in_float16():
    x = 300 * jr.normal(jr.key(0), (5, 16))
    short = jax.jit(standardise)(x.astype("float16"))
    assert np.abs(np.asarray(short, float) - np.asarray(standardise(x), float)).max() < 5e-3


def test_points_between_many_nodes_in_bfloat16(rng):
    model = npax.GridConvCNP(1, 1, spacing=1 / 128, extent=4.0, sizes=(4, 4), blocks=(1, 1), window=3, key=jr.key(0))
    short = cast((model, *(rng.normal(size=(20, 1)).clip(-2, 2) for _ in range(2))), "bfloat16")
    mean = eqx.filter_jit(lambda model, x, y: model(x, y, x).mean)
    with jax.numpy_dtype_promotion("standard"):
        found, exact = (np.asarray(mean(*each), float) for each in (short, cast(short, "float32")))
    assert np.abs(found - exact).max() < 0.02 * np.abs(exact).max()


def test_in_bfloat16_no_target_sees_its_own_value():
    model = cast(TNPA(1, 1, blocks=1, size=8, heads=2, hidden=8, key=jr.key(0)), jnp.bfloat16)
    n = 150  # beyond 128 bfloat16 does not tell i from i - 1/2
    x, y = (jr.normal(jr.key(i), (n, 1), jnp.bfloat16) for i in range(2))
    state = model.condition(x[:3], y[:3])

    @jax.jit
    def raw(y):
        memories, places = model._with_targets(state, x, y, jnp.ones(n, bool))
        return model._read(memories, x, places - 0.5)

    for i in (100, 132, 149):
        before, after = raw(y), raw(y.at[i].add(5))
        assert np.array_equal(before[: i + 1], after[: i + 1])
    assert not np.array_equal(raw(y), raw(y.at[100].add(5)))


def test_nodes_of_a_grid_are_apart_in_bfloat16():
    grid = Grid(spacing=0.01, extent=4.0, margin=0.0, stride=1)
    x = jnp.linspace(-1, 1, 5, dtype=jnp.bfloat16)[:, None]
    cells = grid.cells(x, grid.origin(x, jnp.ones(5, bool)))
    assert grid.side > 400 and (np.abs(np.asarray(cells, float)) < 0.6).sum(axis=-1).max() <= 2


def test_points_far_from_the_origin_have_a_middle_in_float16():
    """Their sum is beyond all numbers."""
    model = cast(drawn("spectral"), "float16")
    x, y = np.full((40, model.dx), 3000, np.float16), np.zeros((40, model.dy), np.float16)
    with jax.numpy_dtype_promotion("standard"):
        task, _ = eqx.filter_jit(model.condition)(x, y)
    assert np.allclose(task[2], 3000)


def test_locations_move_by_a_mean_whose_sum_is_beyond_float16():
    xq, xk = jnp.zeros((2, 1), "float16"), jnp.full((400, 1), -300.0, "float16")
    q, k = jnp.zeros((1, 2, 1), "float16"), jnp.zeros((1, 400, 1), "float16")
    one = jax.tree_util.Partial(lambda pairs: jnp.ones((len(pairs), 1), pairs.dtype))
    with jax.numpy_dtype_promotion("standard"):
        moved = translation_equivariant_attention(q, k, k, one, one, xq=xq, xk=xk)[1]
    assert np.allclose(moved, 300.0)
