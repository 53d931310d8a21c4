"""Laws of every neural process."""

import contextlib
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings, strategies as st
from laws import EQUIVARIANT, MODELS, close, draw_data, evaluate, finite, moments, normal, same, step_by_step

import npax
from npax.alone import compiled_alone
from npax.inference import autoregressive_log_prob
from npax.models._base import hears_errors


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def model(request):
    return request.param(jr.key(7))


@pytest.fixture
def data(model, getkey):
    return draw_data(model, getkey())


def test_the_order_of_the_context_does_not_matter(model, data):
    order = np.random.default_rng(0).permutation(20)
    shuffled = data._replace(xc=np.asarray(data.xc)[order], yc=np.asarray(data.yc)[order])
    assert close(evaluate(model, shuffled)[0], evaluate(model, data)[0])


def test_wrong_shapes_are_refused_by_name(model, data):
    state = jax.eval_shape(model.condition, data.xc, data.yc)
    for words, wrong in {
        rf"`xc` must have the shape \[n, {model.dx}\].*got \[20\]": (data.xc[:, 0], data.yc),
        rf"`xc` must .*got \[20, {model.dx + 1}\]": (np.zeros((20, model.dx + 1), np.float32), data.yc),
        rf"`yc` must have the shape \[20, {model.dy}\].*got \[19, {model.dy}\]": (data.xc, data.yc[1:]),
        r"`mask` must have the shape \[20\].*got \[19\]": (data.xc, data.yc, data.mask[1:]),
    }.items():
        with pytest.raises(ValueError, match=words):
            jax.eval_shape(model.condition, *wrong)
    for mask in (data.mask.astype(np.uint8) * 255, np.asarray(data.mask, np.float32)):
        with pytest.raises(TypeError, match=f"`mask` must be of True and False, got {mask.dtype}: write `mask != 0`"):
            jax.eval_shape(inspect.unwrap(type(model).condition), model, data.xc, data.yc, mask)
    with pytest.raises(ValueError, match="`xt` must have"):
        jax.eval_shape(lambda state, xt: model.predict(state, xt).mean, state, data.xt[:, :-1])


def test_targets_are_independent_of_one_another(model, data, getkey):
    others = data._replace(xt=np.r_[np.asarray(data.xt)[:4], normal(getkey(), (5, model.dx))])
    few, whole = evaluate(model, others)[0], evaluate(model, data)[0]
    assert close([a[:4] for a in few], [a[:4] for a in whole])
    assert not close(few, whole)


def test_where_a_location_is_no_number_no_prediction_is(model, data):
    lost = np.arange(9) == 3
    means = evaluate(model, data._replace(xt=np.where(lost[:, None], np.float32(np.nan), data.xt)))[0][0]
    assert np.isnan(means[lost]).all() and close(means[~lost], evaluate(model, data)[0][0][~lost])


def test_what_stands_under_the_mask_counts_for_nothing(model, data):
    mask = np.arange(20) < 13

    def with_junk(junk):
        cut = lambda a: np.where(mask[:, None], a, np.float32(junk))  # noqa: E731
        return evaluate(model, data._replace(xc=cut(data.xc), yc=cut(data.yc), mask=mask))

    moments, (d_model, d_data) = with_junk(0.0)
    for junk in (jnp.nan, jnp.inf, -1e30):
        junk_moments, (junk_d_model, junk_d_data) = with_junk(junk)
        assert close(junk_moments, moments) and close(junk_d_model, d_model)
        assert finite(junk_moments) and finite(junk_d_model)
        for gradient in (junk_d_data.xc, junk_d_data.yc):
            assert (gradient[13:] == 0).all() and (np.abs(gradient[:13]).max() > 0)
        assert close(junk_d_data.xt, d_data.xt)


def test_an_empty_context_is_a_fully_masked_one(model, data):
    masked = evaluate(model, data._replace(xc=np.full((20, model.dx), np.float32(np.nan)), mask=np.zeros(20, bool)))
    empty = evaluate(model, draw_data(model, jr.key(0), nc=0)._replace(xt=data.xt))
    assert finite(empty) and finite(masked[0]) and finite(masked[1][0])
    assert close(empty[0], masked[0])
    assert close(empty[1][0], masked[1][0]) and close(empty[1][1].xt, masked[1][1].xt)


def test_changed_values_change_the_predictions(model, data):
    changed = data._replace(yc=np.asarray(data.yc) + np.eye(20, dtype=np.float32)[3][:, None])
    for got, before in zip(evaluate(model, changed)[0][:1], evaluate(model, data)[0][:1], strict=True):
        assert (np.abs(got - before).max(axis=-1) > 0).all()


def test_translation(model, data, request):
    shifted = data._replace(xc=data.xc + 4.0, xt=data.xt + 4.0)
    unmoved = close(evaluate(model, shifted)[0], evaluate(model, data)[0], 1e-4)
    assert unmoved == any(f"[{name}]" in request.node.name for name in EQUIVARIANT)


def test_every_parameter_is_trained(model, data):
    """No dead weights: each array, and in the stack each block's, has a gradient somewhere."""
    data = data._replace(error=jnp.abs(data.yc) if hears_errors(model) else None)
    gradients = evaluate(model, data)[1][0]
    for path, g in jax.tree_util.tree_leaves_with_path(gradients):
        if jax.tree_util.keystr(path).endswith(".projection"):  # FAVOR+ draws its features, and keeps them
            continue
        in_stack = "stack" in jax.tree_util.keystr(path)
        parts = g if in_stack else g[None]
        dead = np.abs(parts.reshape(parts.shape[0], -1)).max(axis=1) == 0
        assert not dead.any(), f"{jax.tree_util.keystr(path)} of blocks {np.flatnonzero(dead)}"


def test_outputs_are_float32_of_the_promised_shapes(model, data):
    d = eqx.filter_eval_shape(model, data.xc, data.yc, data.xt, data.mask)
    assert d.batch_shape == (9,) and d.event_shape == (model.dy,)
    mean, variance = evaluate(model, data)[0]
    assert mean.dtype == variance.dtype == jnp.float32 and mean.shape == variance.shape == (9, model.dy)
    assert (variance > 0).all()


def test_condition_once_predict_in_chunks_is_one_call(model, data):
    """By themselves, as in a notebook."""
    state = model.condition(data.xc, data.yc, data.mask)
    chunks = [model.predict(state, xt) for xt in jax.device_put(np.split(np.asarray(data.xt), 3))]
    whole = tuple(np.concatenate(parts) for parts in zip(*[(d.mean, d.variance) for d in chunks], strict=True))
    assert close(whole, evaluate(model, data)[0])


def test_batches_by_vmap_equal_a_loop(model, getkey):
    tasks = [draw_data(model, key) for key in jr.split(getkey(), 3)]
    masks = np.arange(20) < np.array([[20], [7], [0]])
    tasks = [data._replace(mask=mask) for data, mask in zip(tasks, masks, strict=True)]
    batch = jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *tasks))

    looped = jax.tree.map(lambda *parts: np.stack(parts), *[evaluate(model, data)[0] for data in tasks])
    assert close(eqx.filter_jit(eqx.filter_vmap(moments, in_axes=(None, 0)))(model, batch), looped)


def test_jit_changes_nothing(model, data):
    assert close(step_by_step(moments, model, data), evaluate(model, data)[0])


@pytest.mark.parametrize("name", ["rcnp", "universal"])
def test_a_program_for_each_operation_changes_nothing(name, getkey):
    model = MODELS[name](jr.key(7))
    data = draw_data(model, getkey())
    with jax.disable_jit():
        d = model(data.xc, data.yc, data.xt, data.mask)
    assert close((d.mean, d.variance), evaluate(model, data)[0])


def test_steps_are_those_of_a_program_for_each_operation():
    """XLA alone would find that nothing is added; and it would fold the loop."""

    def rounded(a):
        return jax.lax.fori_loop(0, 3, lambda _, a: a + 1e8 - 1e8, a)

    with jax.disable_jit():
        expected = rounded(jnp.float32(1.5))
    assert step_by_step(rounded, jnp.float32(1.5)) == expected == 0


def test_loading_gives_what_was_saved(model, data, tmp_path):
    npax.save(tmp_path / "model.safetensors", model)
    loaded = npax.load(tmp_path / "model.safetensors")
    assert same(loaded, model)
    assert same(evaluate(loaded, data), evaluate(model, data))


@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
@given(nc=st.integers(0, 30), nt=st.integers(1, 20), pad=st.integers(1, 10), seed=st.integers(0, 2**31 - 1))
def test_padding_at_every_size(nc, nt, pad, seed):
    model = MODELS["universal"](jr.key(7))
    data = draw_data(model, jr.key(seed), nc, nt)
    filled = [jnp.concatenate([a, jnp.full((pad, a.shape[1]), jnp.nan)]) for a in (data.xc, data.yc)]

    @eqx.filter_jit
    def both(model, data, filled):
        a = model(data.xc, data.yc, data.xt)
        b = model(*filled, data.xt, jnp.arange(nc + pad) < nc)
        return (a.mean, a.variance), (b.mean, b.variance)

    assert close(*both(model, data, filled))


@pytest.mark.parametrize("name", ["canp", "np", "convcnp", "rcnp", "perf", "pt-tnp"])
def test_the_chain_of_one_target_is_its_prediction(name, getkey):
    """Every model has joint samples and likelihoods by the chain rule; two targets depend on one another."""
    model = MODELS[name](jr.key(7))
    data, yt = draw_data(model, getkey()), np.zeros((2, model.dy), np.float32)
    log_prob = eqx.filter_jit(lambda model, data: model(data.xc, data.yc, data.xt[:2]).log_prob(jnp.zeros_like(yt)))
    first, second = map(float, log_prob(model, data))
    joint = lambda n: autoregressive_log_prob(model, data.xc, data.yc, data.xt[:n], yt[:n], key=jr.key(0))  # noqa: E731
    assert close(joint(1), first) and not close(joint(2), first + second, 1e-6)
    assert npax.sample(model, data.xc, data.yc, data.xt[:2], 3, key=jr.key(0), method="ar").shape == (3, 2, model.dy)


@pytest.mark.parametrize("name", ["canp", "anp-laplace", "banp", "convcnp", "tnp-a", "tnp-nd", "te-tnp", "symmetrised"])
def test_calls_by_themselves_are_compiled_once(name, getkey, compilations):
    """A notebook's loop of calls neither waits for the compiler each time nor fills the process with programs."""
    model = MODELS[name](jr.key(7))
    data = draw_data(model, getkey())

    def answers():
        found = model(data.xc, data.yc, data.xt, data.mask)
        state = model.condition(xc=data.xc, yc=data.yc)
        drawn = [model.sample(state, data.xt, jr.key(0), 2)] if hasattr(model, "sample") else []
        return found.mean, found.variance, *drawn

    first = answers()
    before = compilations.count
    assert before and same(answers(), first) and compilations.count == before


def test_models_of_ones_own_are_compiled_once_too(getkey, compilations):
    class Own(npax.models.AbstractConditionalNeuralProcess):
        likelihood: npax.likelihoods.HeteroscedasticGaussian
        dx: int = eqx.field(static=True)

        def condition(self, xc, yc, mask=None):
            return xc, yc

        def decode(self, state, xt):
            xc, yc = state
            found = npax.attention.scan_attention(xt[None], xc[None], yc[None])[0]
            return jnp.concatenate([found, found], axis=1)

    model = Own(npax.likelihoods.HeteroscedasticGaussian(1), 2)
    data = draw_data(MODELS["cnp"](jr.key(0)), getkey())
    first = model(data.xc, data.yc, data.xt).mean
    before = compilations.count
    assert before and same(model(data.xc, data.yc, data.xt).mean, first) and compilations.count == before


def test_what_is_no_array_reaches_the_method_as_it_is():
    """JAX refuses masked arrays and takes tables; compiled, the former would lose their mask, the latter be refused."""
    seen = []

    class Model(eqx.Module):
        weight: jax.Array

        @compiled_alone
        def method(self, x, n=2):
            seen.append(x)
            return self.weight * jnp.asarray(x).sum() * n

    model, x = Model(jnp.float32(3.0)), np.ones((2, 1), np.float32)
    assert [float(model.method(x)) for _ in range(3)] == [12.0] * 3 and len(seen) == 1
    assert isinstance(seen.pop(), jax.core.Tracer)
    for other in (pd.DataFrame(x), x.tolist(), np.ma.masked_array(x, mask=[[True], [False]])):
        with contextlib.suppress(ValueError, TypeError):
            model.method(other)
        assert seen.pop() is other
    assert float(jax.jit(lambda x: model.method(x, n=1))(x)) == 6.0 and len(seen) == 1


FIXED = {"cnp", "np", "lbanp", "pt-tnp", "te-pt-tnp", "perf", "perf-rotary", "dka", "dka-rotary", "convcnp"}
"""The models whose state does not grow with the context."""


def test_the_state_grows_with_the_context_where_it_must(model, request):
    sizes = []
    for nc in (20, 50):
        xc, yc = (jax.ShapeDtypeStruct((nc, d), jnp.float32) for d in (model.dx, model.dy))
        state = eqx.filter_eval_shape(model.condition, xc, yc)
        sizes.append(sum(a.size for a in jax.tree.leaves(state)))
    name = request.node.callspec.id
    known = FIXED | {"np-classes", "convcnp-2d", "grid-convcnp", "grid-convcnp-1d", "te-pt-tnp-still"}
    assert (sizes[0] == sizes[1]) == (name in known), sizes


def test_models_of_ones_own_are_called_with_right_shapes_alone():
    """Whether they check these or not."""

    class Constant(npax.models.AbstractConditionalNeuralProcess):
        likelihood: npax.likelihoods.AbstractLikelihood
        dx: int = 1

        def condition(self, xc, yc, mask=None):
            return jnp.mean(yc, axis=0)

        def decode(self, state, xt):
            return jnp.broadcast_to(state, (len(xt), 2))

    model, x = Constant(npax.likelihoods.HeteroscedasticGaussian(1)), jnp.ones((3, 1))
    call = inspect.unwrap(npax.models.AbstractNeuralProcess.__call__)
    assert call(model, x, x, x).mean.shape == (3, 1)
    with pytest.raises(ValueError, match=r"`xc` must have the shape \[n, 1\].*got \[3\]"):
        call(model, x[:, 0], x[:, 0], x)
    with pytest.raises(ValueError, match=r"`yc` must have the shape \[3, 1\].*got \[2, 1\]"):
        call(model, x, x[1:], x)
