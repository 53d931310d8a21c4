"""Models that hear of known standard errors, and those that do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from laws import MODELS, close, draw_data, finite, same
from untrained import untrained

import npax
from npax.models._base import condition_on, hears_errors

HEAR = ("universal", "invariant", "symmetrised")


@pytest.fixture(scope="module", params=HEAR)
def model(request):
    return untrained(MODELS[request.param])


@pytest.fixture
def data(model, getkey):
    return draw_data(model, getkey())


@pytest.fixture
def error(data):
    return np.random.default_rng(1).uniform(0.0, 2.0, data.yc.shape).astype(np.float32)


@eqx.filter_jit
def moments(model, data, error):
    found = model(data.xc, data.yc, data.xt, data.mask, error)
    return found.mean, found.variance


def test_no_errors_are_zeros_and_others_matter(model, data, error):
    none, zeros, some = (moments(model, data, e) for e in (None, np.zeros_like(error), error))
    assert close(none, zeros, 1e-6) and not close(some, zeros, 1e-3)


def test_an_error_belongs_to_its_observation(model, data, error):
    order = np.random.default_rng(0).permutation(len(error))
    turned = data._replace(xc=data.xc[order], yc=data.yc[order])
    assert close(moments(model, turned, error[order]), moments(model, data, error))
    assert not close(moments(model, turned, error), moments(model, data, error), 1e-3)


def test_errors_under_the_mask_count_for_nothing(model, data, error):
    data = data._replace(mask=jnp.arange(len(error)) < 15)
    wild = error.copy()
    wild[15:] = np.nan

    @eqx.filter_jit
    def gradients(model, error):
        return eqx.filter_grad(lambda operands: sum(map(jnp.sum, moments(operands[0], data, operands[1]))))(
            (model, error)
        )

    assert same(moments(model, data, wild), moments(model, data, error))
    of_error = gradients(model, jnp.asarray(wild))[1]
    assert finite(gradients(model, jnp.asarray(wild))) and np.any(of_error[:15]) and not np.any(of_error[15:])


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e6])
def test_of_all_sizes_answers_and_gradients_are_finite(model, data, size):
    loss = lambda error: sum(map(jnp.sum, moments(model, data, error)))  # noqa: E731
    assert finite(jax.jit(jax.value_and_grad(loss))(jnp.full(data.yc.shape, size)))


def test_of_another_shape_they_are_refused(model, data):
    with pytest.raises(ValueError, match=r"`error` must have the shape of the values, \[20, \d\]; got \[20, 3\]"):
        jax.eval_shape(model.condition, data.xc, data.yc, None, np.ones((20, 3), np.float32))


@pytest.mark.parametrize("name", MODELS)
def test_models_hear_of_errors_or_refuse_them(name):
    model = MODELS[name](jr.key(7))
    data = draw_data(model, jr.key(0))
    assert hears_errors(model) == (name in HEAR)
    state = jax.eval_shape(lambda: condition_on(model, data.xc, data.yc, data.mask))
    if name in HEAR:
        assert jax.tree.structure(state) == jax.tree.structure(
            jax.eval_shape(lambda: condition_on(model, data.xc, data.yc, data.mask, jnp.abs(data.yc)))
        )
    else:
        with pytest.raises(ValueError, match=f"this {type(model).__name__} was not made for any"):
            condition_on(model, data.xc, data.yc, data.mask, jnp.abs(data.yc))


def test_a_model_of_tokens_that_hears_of_none_says_so():
    model = MODELS["tnp-d"](jr.key(0))
    data = draw_data(model, jr.key(0))
    with pytest.raises(ValueError, match="this TNPD was not made for any"):
        model.condition(data.xc, data.yc, data.mask, jnp.abs(data.yc))


def test_the_shipped_model_hears_of_them():
    assert hears_errors(npax.load("gp-universal"))
