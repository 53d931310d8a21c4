"""Rotary products of coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import BIASES, normal, on_lattice

import npax
from npax.attention import TokenAttention
from npax.attention.rotary import cos_sin


@pytest.fixture
def rotary(getkey):
    return npax.RotaryCoordinates(2, 6, 2, high=8.0, key=getkey())


@eqx.filter_jit
def turned(rotary, a, x):
    return rotary.rotate(a, rotary.turns(x))


def test_products_are_the_formula(rotary, getkey):
    """Each pair of channels as a complex number, turned by w . x."""
    a, x = normal(getkey(), (2, 7, 6)), normal(getkey(), (7, 2))
    complex_a = np.asarray(a[..., :3], np.float64) + 1j * np.asarray(a[..., 3:], np.float64)
    angle = np.einsum("hpx,nx->hnp", np.asarray(rotary.w, np.float64), np.asarray(x, np.float64))
    true = complex_a * np.exp(1j * angle)
    assert reference.relative(turned(rotary, a, x), np.concatenate([true.real, true.imag], axis=-1)) < 1e-5


def test_products_depend_on_differences_alone(rotary, getkey):
    q, k = normal(getkey(), (2, 2, 5, 6))
    xq, xk = (on_lattice(getkey(), (5, 2)) for _ in range(2))

    def products(xq, xk):
        return np.einsum("hqd,hkd->hqk", turned(rotary, q, xq), turned(rotary, k, xk))

    plain, aside = products(xq, xk), np.float32([0.0, 0.5])
    assert reference.relative(products(xq + 4.0, xk + 4.0), plain) < 1e-4
    assert reference.relative(products(xq + aside, xk + aside), plain) < 1e-4
    assert reference.relative(products(xk, xq), plain) > 0.1  # it tells left from right


def test_lengths_are_kept_and_missing_coordinates_are_zeros(rotary, getkey):
    a, x = normal(getkey(), (2, 5, 6)), normal(getkey(), (5, 2))
    assert reference.relative(np.linalg.norm(turned(rotary, a, x), axis=-1), np.linalg.norm(a, axis=-1)) < 1e-5
    line = jax.device_put(x * np.float32([1, 0]))
    assert reference.relative(turned(rotary, a, line[:, :1]), turned(rotary, a, line)) < 1e-6


def test_angles_of_many_turns_keep_their_accuracy():
    """One channel pair (1, 0), turned by the coordinate itself, comes out as its cosine and sine."""
    rotary = eqx.tree_at(lambda r: r.w, npax.RotaryCoordinates(1, 2, 1, key=jr.key(0)), jnp.ones((1, 1, 1)))
    x = np.linspace(-1000, 1000, 4001).astype(np.float32)[:, None]
    pair = turned(rotary, np.tile(np.float32([1, 0]), (1, len(x), 1)), x)[0]
    true = np.concatenate([np.cos(x.astype(np.float64)), np.sin(x.astype(np.float64))], axis=-1)
    assert np.abs(np.asarray(pair) - true).max() < 2e-6
    near = x[np.abs(x) < 5][:, None]
    slope = jax.jit(jax.vmap(jax.grad(lambda x: turned(rotary, jnp.array([[[1.0, 0.0]]]), x[None])[0, 0, 1])))(near)
    assert np.abs(np.asarray(slope) - np.cos(near.astype(np.float64))).max() < 1e-5


def test_cosines_of_no_matter_which_angle_are_bounded():
    angle = jnp.asarray([1e6, -1e8, 1e9, -1e15, 3e38], jnp.float32)
    assert all(np.abs(np.asarray(turn)).max() <= 1 + 1e-5 for turn in jax.jit(cos_sin)(angle))


def test_scan_equals_dense_on_turned_products(rotary, getkey):
    bias = BIASES["geometric"](getkey())
    q, k, v = (normal(getkey(), (2, n, 6)) for n in (20, 37, 37))
    xq, xk = normal(getkey(), (20, 2)), normal(getkey(), (37, 2))

    @eqx.filter_jit
    def gradients(attend, rotary):
        def total(rotary):
            out = attend(turned(rotary, q, xq), turned(rotary, k, xk), v, bias=bias, xq=xq, xk=xk)
            return jnp.sum(jnp.sin(out)), out

        return eqx.filter_value_and_grad(total, has_aux=True)(rotary)

    (_, dense), d_dense = gradients(npax.dense_attention, rotary)
    (_, scan), d_scan = gradients(eqx.Partial(npax.scan_attention, block=16), rotary)
    assert reference.relative(scan, dense) < 1e-5 and reference.relative(d_scan.w, d_dense.w) < 1e-4


def test_rotations_of_other_shapes_are_refused(getkey):
    x, z, seen = jnp.zeros((5, 2)), jnp.zeros((5, 8)), jnp.ones(5, bool)
    for heads, size in ((1, 4), (2, 8)):
        rotary = npax.RotaryCoordinates(heads, size, 2, key=getkey())
        parts = {"attention": npax.DenseAttention(), "rotary": rotary, "key": getkey()}
        with pytest.raises(ValueError, match=f"of {heads} heads of size {size}, and is to turn 2 of size 4"):
            TokenAttention(8, heads=2, head_size=4, **parts).memorise(z, x, seen)
    with pytest.raises(ValueError, match="of 1 coordinates, the locations have 2"):
        npax.RotaryCoordinates(2, 4, 1, key=getkey()).turns(x)


def test_an_odd_size_is_refused():
    with pytest.raises(ValueError, match=r"`size` must be even.*got 5"):
        npax.RotaryCoordinates(2, 5, 1, key=jr.key(0))


@pytest.mark.parametrize(("low", "high"), [(0.0, 24.0), (-1.0, 24.0), (5.0, 1.0), (0.5, np.inf)])
def test_frequencies_have_a_range(low, high):
    with pytest.raises(ValueError, match="`low` must be positive and `high` finite, not below it; got low="):
        npax.RotaryCoordinates(2, 6, 1, low=low, high=high, key=jr.key(0))
