"""A digest tells values, types and settings, and does not tell processes."""

import dataclasses
import functools
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from npax.fingerprint import fingerprint

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def test_arrays_of_numpy_and_jax_are_alike():
    """Inside of a PyTree, whose own type is told."""
    assert fingerprint([(X,)]) == fingerprint([(jnp.asarray(X),)]) == fingerprint([(np.asfortranarray(X),)])


OTHERS = [X + 1, X.T, X.astype(np.float16), X.ravel(), [X], "x", np.array(["x"], object), jax.random.key(0)]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_what_differs_is_told(other):
    assert fingerprint((X,)) != fingerprint((other,)) == fingerprint((other,))


def test_keys_count_by_their_numbers_and_functions_by_their_names():
    assert fingerprint((jax.random.key(0),)) != fingerprint((jax.random.key(1),))
    one, same = (eqx.nn.Lambda(lambda x: x) for _ in range(2))  # at different addresses, as in another process
    assert fingerprint((one,)) == fingerprint((same,)) != fingerprint((eqx.nn.Lambda(jax.nn.relu),))


def scaled(by, kept=None):
    def function(x, times=2.0):
        return function(by * x) if kept else times * x

    return function


def test_functions_count_by_what_they_close_over_and_their_defaults():
    assert fingerprint((scaled(1.0),)) == fingerprint((scaled(1.0),)) != fingerprint((scaled(2.0),))
    assert fingerprint((scaled(1.0, [X]),)) == fingerprint((scaled(1.0, [X.copy()]),))
    assert fingerprint((scaled(1.0, [X]),)) != fingerprint((scaled(1.0, [X + 1]),))
    one, other = scaled(1.0), scaled(1.0)
    other.__defaults__ = (3.0,)
    assert fingerprint((one,)) != fingerprint((other,))


class Weighted:
    def __init__(self, weight):
        self.weight, self.again = weight, self

    def __call__(self, x):
        return self.weight * x


LONG, OTHER = np.zeros(5000), np.r_[np.zeros(2500), 1.0, np.zeros(2499)]  # written alike: NumPy leaves out the middle


@pytest.mark.parametrize(
    "make",
    [
        lambda weight: functools.partial(plain, weight=weight),
        lambda weight: functools.partial(scaled(1.0, weight)),
        Weighted,
        lambda weight: Weighted(weight).__call__,
    ],
)
def test_partials_methods_and_objects_count_by_what_they_hold(make):
    assert fingerprint((make(LONG),)) == fingerprint((make(LONG.copy()),)) != fingerprint((make(OTHER),))


def test_checks_of_types_around_a_function_do_not_count():
    """The same run, with them in one process and without in another."""

    @functools.wraps(plain)
    def checked(*arguments):
        return plain(*arguments)

    assert fingerprint((checked,)) == fingerprint((plain,)) != fingerprint((scaled(1.0),))


def plain(x):
    return x


class Setting(eqx.Module):
    """A PyTree with a function, or an object, among its settings."""

    of: object = eqx.field(static=True)
    inner: tuple = ()


def test_settings_of_trees_count_by_what_they_hold():
    def deep(of):
        return Setting(None, ({"a": Setting(of)},))

    for make in (Setting, deep):
        for one, same, other in (
            (scaled(1.0), scaled(1.0), scaled(2.0)),
            (Weighted(LONG), Weighted(LONG.copy()), Weighted(OTHER)),
        ):
            assert fingerprint((make(one),)) == fingerprint((make(same),)) != fingerprint((make(other),))


@dataclasses.dataclass(eq=False)
class Rows:
    """Written by its values, of which NumPy leaves out the middle."""

    y: np.ndarray


def test_objects_that_write_themselves_count_by_what_they_hold():
    assert fingerprint((Rows(LONG),)) == fingerprint((Rows(LONG.copy()),)) != fingerprint((Rows(OTHER),))


def test_sets_are_the_same_in_every_process():
    script = "from npax.fingerprint import fingerprint; print(fingerprint([{'alpha', 'beta', 'gamma', 'delta'}]))"
    one, other = (
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "12"
    )
    assert one == other != b""


def test_names_that_are_bound_later_are_legal():
    def function():
        return later

    first = fingerprint((function,))
    later = 1
    assert fingerprint((function,)) != first
