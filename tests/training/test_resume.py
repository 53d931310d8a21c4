"""Which runs are told apart."""

from functools import partial
from types import SimpleNamespace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import npax
from npax.tasks import Curriculum, GPTask, RBFPrior, Stage
from npax.training.resume import _chosen, _code, _updates, fingerprint_of_run

PARAMS = {"a": jnp.ones(2), "b": jnp.ones(2)}


def test_the_chunk_is_part_of_a_run_where_stages_change_with_it():
    state, tasks = SimpleNamespace(model={"w": jnp.ones(2)}, opt_state=()), GPTask(RBFPrior(), nc=4)

    def of(chunk, batches):
        stages = tuple(Stage(tasks, size) for size in batches)
        return fingerprint_of_run(state, Curriculum(stages), npax.objectives.nll, optax.sgd(0.1), chunk)

    assert of(1, [4, 8]) != of(2, [4, 8]) and of(1, [4]) == of(2, [4])


def test_what_is_called_is_told_apart():
    assert _code(lambda m, task: np.sum(task)) != _code(lambda m, task: np.mean(task))


def test_methods_are_told_apart():
    class Study:
        def one(self, model, task, key):
            return 1.0

        def other(self, model, task, key):
            return 2.0

    assert _code(Study().one) == _code(Study.one) != _code(Study().other)


@pytest.mark.parametrize("labels", [("x", "y"), (0, 1)])
def test_labels_that_choose_other_parameters_are_told_apart(labels):
    one, other = labels
    found = [
        _chosen(
            optax.multi_transform(
                {one: optax.sgd(0.1), other: optax.set_to_zero()}, dict(zip("ab", each, strict=True))
            ),
            PARAMS,
        )
        for each in (labels, labels[::-1])
    ]
    assert found[0] != found[1]


def fixed(params, which):
    return {name: name == which for name in params}


@pytest.mark.parametrize("kind", [partial, eqx.Partial])
def test_masks_that_are_partials_are_told_apart(kind):
    one, other = (_chosen(optax.masked(optax.set_to_zero(), kind(fixed, which=name)), PARAMS) for name in "ab")
    assert one != other


def test_an_update_that_is_a_partial_is_seen():
    def update_by(grads, state, params=None, *, times):
        return grads, state

    own = optax.GradientTransformation(lambda params: (), partial(update_by, times=2))
    for optimizer in (own, optax.chain(optax.clip(1.0), own)):
        assert any("update_by" in name for name in _updates(optimizer))
