"""The gradient of a product under every order of `vmap` and `grad`, against autodiff."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from npax.matmul import matmul, summed_over_tasks

TASKS, SEEDS, ROWS = 3, 2, 5
rng = np.random.default_rng(0)
xs, ws = (
    jax.device_put(rng.normal(size=shape).astype(np.float32)) for shape in ((SEEDS, TASKS, ROWS, 4), (SEEDS, 4, 6))
)


def promised(x, w):
    """As in training: the promise holds while the function is traced, and gradients are taken of it afterwards."""
    with summed_over_tasks():
        return matmul(x, w)


def network(product):
    def loss(w, x):
        y = jnp.sin(product(x, w))
        return jnp.sum(jnp.square(product(y, w.T)))

    return loss


def compiled(ask, product):
    return jax.jit(lambda: ask(network(product)))()


def one(loss):
    return jax.value_and_grad(loss, argnums=(0, 1))(ws[0], xs[0, 0])


def tasks(loss):
    return jax.value_and_grad(lambda w, x: jnp.mean(jax.vmap(loss, (None, 0))(w, x)), argnums=(0, 1))(ws[0], xs[0])


def tasks_of_tasks(loss):
    nested = jax.vmap(jax.vmap(loss, (None, 0)), (None, 0))
    return jax.value_and_grad(lambda w, x: jnp.mean(nested(w, x)), argnums=(0, 1))(ws[0], xs)


def weights_alone(loss):
    return jax.grad(lambda w: jnp.sum(jax.vmap(loss, (0, None))(w, xs[0, 0])))(ws)


def seeds_of_tasks(loss):
    def of_seed(w, x):
        return jax.value_and_grad(lambda w: jnp.mean(jax.vmap(loss, (None, 0))(w, x)))(w)

    return jax.vmap(of_seed)(ws, xs)


def seeds_alone(loss):
    return jax.vmap(jax.grad(loss))(ws, xs[:, 0])


def tasks_in_a_scan(loss):
    def through(w, x):
        total, _ = jax.lax.scan(lambda total, x: (total + loss(w, x), None), 0.0, x)
        return total

    return jax.grad(lambda w: jnp.mean(jax.vmap(through, (None, 0))(w, xs)))(ws[0])


def gradient_of_each_task(loss):
    return jax.vmap(jax.grad(loss), (None, 0))(ws[0], xs[0])


@pytest.mark.parametrize(
    "ask", [one, tasks, tasks_of_tasks, weights_alone, seeds_of_tasks, seeds_alone, tasks_in_a_scan]
)
def test_gradients_summed_over_tasks_equal_those_of_autodiff(ask):
    wanted, found = compiled(ask, jnp.matmul), compiled(ask, promised)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.allclose(a, b, rtol=1e-5, atol=1e-5)


def test_without_the_promise_each_task_has_its_own_gradient():
    found, wanted = (compiled(gradient_of_each_task, product) for product in (matmul, jnp.matmul))
    assert np.allclose(found, wanted, rtol=1e-6)


def test_with_the_promise_broken_tasks_share_the_mean():
    found, wanted = (compiled(gradient_of_each_task, product) for product in (promised, jnp.matmul))
    assert not np.allclose(found, wanted, rtol=1e-2)
    assert np.allclose(found.sum(0), wanted.sum(0), rtol=1e-4)


def test_gradients_within_what_is_summed_are_those_of_each_task():
    """A step before the loss, as in meta-learning, and its own derivatives."""

    def after_a_step(loss):
        def moved(w, x):
            return loss(w - 0.01 * jax.grad(loss)(w, x), x) + jnp.sum(jnp.square(jax.grad(loss, argnums=1)(w, x)))

        return moved

    def trained(product):
        def total(w):
            with summed_over_tasks() if product is matmul else contextlib.nullcontext():
                return jnp.mean(jax.vmap(after_a_step(network(product)), (None, 0))(w, xs[0]))

        return jax.jit(jax.value_and_grad(total))(ws[0])

    for a, b in zip(trained(matmul), trained(jnp.matmul), strict=True):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_was_compiled_under_the_promise_is_not_used_without_it():
    once = jax.jit(network(matmul))
    with summed_over_tasks():
        once(ws[0], xs[0, 0])
    found, wanted = (jax.vmap(jax.grad(loss), (None, 0))(ws[0], xs[0]) for loss in (once, network(jnp.matmul)))
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5)
