"""The four kinds of cross-attention of attentive neural processes against float64 numpy."""

import equinox as eqx
import numpy as np
import pytest
import reference
from laws import normal

import npax


@pytest.fixture
def points(getkey):
    return normal(getkey(), (12, 2)), normal(getkey(), (12, 8)), normal(getkey(), (5, 2)), np.arange(12) < 9


@eqx.filter_jit
def read(attention, xc, r, xt, mask):
    return attention.read(attention.memorise(xc, r, mask), xt)


def as64(a):
    return np.asarray(a, np.float64)


def average(logits, r):
    return reference.softmax_average(logits[None, :, :9], as64(r)[None, :9])[0][0]


def test_uniform_is_one_mean_for_all(points):
    xc, r, xt, mask = points
    truth = as64(r)[:9].mean(axis=0, keepdims=True)
    assert reference.relative(read(npax.UniformAttention(), xc, r, xt, mask), truth) < 1e-6


def test_laplace_weighs_by_the_sum_of_absolute_differences(points):
    xc, r, xt, mask = points
    away = np.abs(as64(xt)[:, None] - as64(xc)[None]).sum(axis=-1)
    assert reference.relative(read(npax.LaplaceAttention(0.5), xc, r, xt, mask), average(-away / 0.5, r)) < 1e-5


def test_dot_products_of_embedded_locations(points, getkey):
    xc, r, xt, mask = points
    attention = npax.DotProductAttention(2, 6, key=getkey())
    query, key = (as64(eqx.filter_jit(attention.embed)(x)) for x in (xt, xc))
    logits = query @ key.T / np.sqrt(6)
    assert reference.relative(read(attention, xc, r, xt, mask), average(logits, r)) < 1e-5


def test_multi_head_attention_joins_its_heads(points, getkey):
    xc, r, xt, mask = points
    attention = npax.MultiHeadAttention(2, 8, heads=2, key=getkey())
    projected = eqx.filter_jit(lambda a: (a.query(a.embed(xt)), a.key(a.embed(xc)), a.value(r)))
    q, k, v = map(as64, projected(attention))
    heads = [average(q[:, h] @ k[:, h].T / 2, v[:, h]) for h in (slice(0, 4), slice(4, 8))]
    truth = np.concatenate(heads, axis=1) @ as64(attention.output.weight)
    assert reference.relative(read(attention, xc, r, xt, mask), truth) < 1e-5


def test_without_any_context_there_is_nothing_to_read(points, getkey):
    xc, r, xt, _ = points
    attentions = [
        npax.UniformAttention(),
        npax.LaplaceAttention(),
        npax.DotProductAttention(2, 6, key=getkey()),
        npax.MultiHeadAttention(2, 8, key=getkey()),
    ]
    for attention in attentions:
        assert (np.asarray(read(attention, xc, r, xt, np.zeros(12, bool))) == 0).all()


def test_heads_must_divide_the_width(getkey):
    with pytest.raises(ValueError, match="`heads` must divide `size`, got heads=3, size=8"):
        npax.MultiHeadAttention(2, 8, heads=3, key=getkey())


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_length_is_positive(scale):
    with pytest.raises(ValueError, match="`scale` must be positive"):
        npax.LaplaceAttention(scale)


def test_an_attention_of_other_locations_is_refused_when_the_model_is_made(getkey):
    for attention in (npax.MultiHeadAttention(2, 24, key=getkey()), npax.DotProductAttention(2, 24, key=getkey())):
        with pytest.raises(ValueError, match="made for locations of 2 columns, and `dx` is 1"):
            npax.CNP(1, 1, size=24, attention=attention, key=getkey())


def test_a_width_unlike_the_model_is_refused_when_it_is_made(getkey):
    for model in (npax.CNP, npax.NP):
        with pytest.raises(ValueError, match="reads representations of width 16 and the model's `size` is 24"):
            model(1, 1, size=24, attention=npax.MultiHeadAttention(1, 16, key=getkey()), key=getkey())
