"""BO-1D: what a search is, and that a belief that is right beats chance."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from npax.bayesopt import (
    ConfidenceBound,
    ExpectedImprovement,
    ModelSurrogate,
    Problem,
    RandomSearch,
    ThompsonSampling,
    draw_problem,
    search,
    search_all,
)
from npax.tasks import RBFPrior, gp_1d
from npax.tasks.gp_kernels import rbf


@pytest.fixture(scope="module")
def problems() -> Problem:
    tasks = gp_1d(RBFPrior())
    return jax.jit(jax.vmap(lambda key: draw_problem(tasks, key)))(jr.split(jr.key(0), 24))


def run(surrogate, acquisition, problems, n_iter=12):
    keys = jr.split(jr.key(1), len(problems.f))
    return jax.tree.map(np.asarray, search_all(surrogate, acquisition, problems, keys, n_init=5, n_iter=n_iter))


@pytest.fixture(scope="module")
def oracle(problems):
    return run(None, ExpectedImprovement(), problems)


def test_regrets_are_what_they_are_called(problems, oracle):
    f = np.asarray(problems.f, float)
    above = np.take_along_axis(f, oracle.chosen, axis=1) - f.min(axis=1, keepdims=True)
    np.testing.assert_allclose(oracle.simple, np.minimum.accumulate(above, axis=1)[:, 4:], atol=1e-5)
    np.testing.assert_allclose(oracle.cumulative, np.cumsum(above[:, 5:], axis=1), atol=1e-4)
    assert np.all(np.any(np.isclose(oracle.recommended[:, None], above, atol=1e-6), axis=1))
    np.testing.assert_array_equal(oracle.chosen[:, :5], np.tile(np.arange(5), (24, 1)))
    noise = oracle.y - np.take_along_axis(f, oracle.chosen, axis=1)
    assert abs(noise.std() - 0.1) < 0.02 and oracle.simple.min() >= 0


@pytest.mark.parametrize("acquisition", [ExpectedImprovement(), ConfidenceBound(), ThompsonSampling()], ids=repr)
def test_the_oracle_beats_chance(acquisition, problems):
    found = run(None, acquisition, problems)
    chance = run(None, RandomSearch(), problems)
    assert np.all(np.diff(found.simple, axis=1) <= 0)
    assert found.simple[:, -1].mean() < 0.2 * found.simple[:, 0].mean()
    assert found.simple[:, -1].mean() < 0.5 * chance.simple[:, -1].mean()
    assert found.cumulative[:, -1].mean() < 0.5 * chance.cumulative[:, -1].mean()
    assert chance.simple[:, -1].mean() > 0.02


def test_a_model_that_is_the_oracle_does_as_well(exact, problems):
    """A Gaussian process in the clothes of a model, makes its choices."""
    some = Problem(problems.x[:4], problems.f[:4], jax.vmap(rbf)(jnp.full(4, 0.7)))
    by_model = run(ModelSurrogate(exact[0]), ConfidenceBound(), some, n_iter=4)
    by_oracle = run(None, ConfidenceBound(), some, n_iter=4)
    np.testing.assert_array_equal(by_model.chosen, by_oracle.chosen)


def test_slots_are_padding_only(small, problems):
    """A search of 3 iterations is the beginning of one of 6: empty slots tell nothing."""
    problem = jax.tree.map(lambda a: a[0], problems)
    surrogate, rule = ModelSurrogate(small), ConfidenceBound()
    short, long = (
        eqx.filter_jit(search)(surrogate, rule, problem, jr.key(0), noise_std=0.0, n_init=5, n_iter=n) for n in (3, 6)
    )
    np.testing.assert_array_equal(long.chosen[:8], short.chosen)
    np.testing.assert_allclose(long.simple[:4], short.simple)


@pytest.mark.parametrize("n_init", [0, 151])
def test_a_search_begins_with_some_of_the_candidates(n_init, problems):
    problem = jax.tree.map(lambda a: a[0], problems)
    with pytest.raises(ValueError, match=f"`n_init` must be from 1 to 150, the number of candidates, got {n_init}"):
        search(None, RandomSearch(), problem, jr.key(0), n_init=n_init)


def test_no_iterations_are_legal_and_misfits_are_named(problems, oracle):
    found = run(None, ExpectedImprovement(), problems, n_iter=0)
    np.testing.assert_allclose(found.simple, oracle.simple[:, :1], atol=1e-6)
    assert found.cumulative.shape == (24, 0)
    with pytest.raises(ValueError, match="`n_iter` must be a whole number, at least 0; got -1"):
        run(None, ExpectedImprovement(), problems, n_iter=-1)
    with pytest.raises(ValueError, match=r"`keys` must be one for each of 24 problems, got the shape \[2\]"):
        search_all(None, ExpectedImprovement(), problems, jr.split(jr.key(0), 2))
