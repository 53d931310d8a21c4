"""Tasks one after another have the numbers, slopes and second slopes of tasks side by side."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from npax.turns import in_turns


def wave(operands, shift):
    a, b = operands
    return jnp.sin(a * b + shift)


def test_of_no_tasks_there_are_no_answers():
    none = jnp.zeros((0, 4))
    assert jax.vmap(lambda a: in_turns(wave, 2)((a, a), a))(none).shape == (0, 4)


@pytest.mark.parametrize("together", [1, 2, 6])
def test_values_and_derivatives_are_those_of_the_function(together):
    a, b, shift = jr.normal(jr.key(0), (3, 6, 4))

    def total(function, operands):
        return jnp.sum(jax.vmap(function)(operands, shift))

    def slopes(function):
        return jax.grad(lambda operands: jnp.sum(jnp.cos(total(function, operands))))

    def bends(function):
        return jax.grad(lambda operands: sum(jnp.sum(slope**2) for slope in slopes(function)(operands)))

    for derived in (lambda function: lambda operands: total(function, operands), slopes, bends):
        found, expected = (jax.jit(derived(each))((a, b)) for each in (in_turns(wave, together), wave))
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
