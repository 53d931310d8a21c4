"""The published sizes."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import npax
from npax.likelihoods import Categorical, HeteroscedasticGaussian
from npax.models import presets
from npax.serialise import count_parameters

PAPERS = {
    name: function
    for name, function in vars(presets).items()
    if inspect.isfunction(function) and {"dx", "dy", "key"} <= set(inspect.signature(function).parameters)
}


def test_every_name_of_the_comparison_is_there():
    names = "cnp np bnp canp anp banp convcnp rcnp tnp_d tnp_nd tnp_a eqtnp lbanp pt_tnp te_tnp te_pt_tnp"
    assert set(names.split()) <= set(PAPERS)
    assert {f"tnp_kr_{kind}" for kind in ("full", "sa", "perf", "dka")} <= set(PAPERS)


COUNTS = {
    "cnp": 462_082,
    "np": 446_338,
    "bnp": 463_922,
    "canp": 481_106,
    "anp": 455_170,
    "banp": 501_842,
    "rcnp": 461_826,
    "convcnp": 488_772,
    "tnp_d": 472_450,
    "tnp_nd": 473_555,
    "tnp_a": 472_450,
    "eqtnp": 474_754,
    "lbanp": 528_002,
    "pt_tnp": 476_802,
    "te_tnp": 523_650,
    "te_pt_tnp": 507_042,
    "tnp_kr_full": 521_706,
    "tnp_kr_sa": 521_706,
    "tnp_kr_sa_invariant": 505_194,
    "tnp_kr_sa_rotary": 505_362,
    "tnp_kr_sa_periodic": 521_778,
    "tnp_kr_sa_spectral": 479_306,
    "tnp_kr_perf": 533_634,
    "tnp_kr_perf_rotary": 517_890,
    "tnp_kr_dka": 512_322,
    "tnp_kr_dka_rotary": 495_618,
}
"""Parameters for one column of `x` and one of `y`: rows trained with other numbers are of other models."""


def test_the_counts_are_pinned():
    found = {name: parameters(eqx.filter_eval_shape(f, 1, 1, key=jr.key(0))) for name, f in PAPERS.items()}
    assert found == COUNTS


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize(("dx", "dy"), [(1, 1), (2, 3)])
def test_presets_have_half_a_million_parameters(name, dx, dy):
    model = eqx.filter_eval_shape(PAPERS[name], dx, dy, key=jr.key(0))
    assert model.dx == dx and model.dy == dy
    assert 0.42e6 < parameters(model) < 0.55e6


@pytest.mark.parametrize("name", sorted(set(PAPERS) - {"tnp_nd"}))
def test_a_likelihood_of_other_columns_is_refused(name):
    with pytest.raises(ValueError, match="`likelihood` predicts 3 columns and `dy` is 1"):
        eqx.filter_eval_shape(PAPERS[name], 2, 1, likelihood=HeteroscedasticGaussian(3), key=jr.key(0))


@pytest.mark.parametrize("name", sorted(set(PAPERS) - {"tnp_nd"}))
def test_presets_take_another_likelihood(name):
    """Three channels of pixels for all, three classes for all but those that resample residuals."""
    for likelihood in (HeteroscedasticGaussian(3, min_std=0.05), Categorical(3)):
        if isinstance(likelihood, Categorical) and name in ("bnp", "banp"):
            continue
        model = eqx.filter_eval_shape(PAPERS[name], 2, 3, likelihood=likelihood, key=jr.key(0))
        assert model.likelihood == likelihood
        xc, y, xt = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((5, 2), (5, 3), (7, 2)))
        predicted = eqx.filter_eval_shape(model, xc, y, xt)
        assert predicted.batch_shape == (7,) and predicted.event_shape == (3,)


def test_the_size_of_kr2_is_pinned():
    """6 blocks of width 64, 4 heads of 32, feed-forward 256, co-embedding [256, 128, 64], head [256, 64, 2]."""
    attention = 3 * 64 * 128 + 128 * 64 + 64
    feed = 64 * 256 + 256 + 256 * 64 + 64
    norms, bias = 2 * 2 * 64, 3 * 4 * 5
    embed = 2 * 64 + 2 * (1 * 64 + 64) + (192 * 256 + 256) + (256 * 128 + 128) + (128 * 64 + 64)
    head = 2 * 64 + (64 * 256 + 256) + (256 * 64 + 64) + (64 * 2 + 2)
    abstract = eqx.filter_eval_shape(presets.tnp_kr_sa, 1, 1, key=jr.key(0))
    model = jax.tree.map(lambda a: jax.device_put(np.zeros(a.shape, a.dtype)), abstract)
    assert count_parameters(model) == 6 * (attention + feed + norms + bias) + embed + head


def test_the_universal_model_takes_three_coordinates_and_tells_noise():
    model = eqx.filter_eval_shape(presets.gp_universal, key=jr.key(0))
    assert model.dx == 3 and model.dy == 1 and model.likelihood.size == 3
    assert 0.42e6 < parameters(model) < 0.55e6


def test_the_shipped_model_of_pictures_is_its_preset():
    preset, shipped = eqx.filter_eval_shape(presets.field_universal, key=jr.key(0)), npax.load("field-universal")
    assert jax.tree.structure(shipped) == jax.tree.structure(preset)
    assert [a.shape for a in jax.tree.leaves(shipped)] == [a.shape for a in jax.tree.leaves(preset)]


def parameters(abstract):
    return sum(a.size for a in jax.tree.leaves(abstract) if hasattr(a, "size"))
