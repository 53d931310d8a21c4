"""Searches among whole numbers."""

import numpy as np
import pytest
import untrained
from hypothesis import given, settings, strategies as st

import npax
from npax.bayesopt import Optimizer, minimize
from npax.bayesopt.box import Box


@pytest.fixture(scope="module")
def small():
    return untrained.small()


def asked(opt, n, f=lambda x: float(np.sum(x**2))):
    """The places of `n` questions, each answered at once."""
    places = []
    for _ in range(n):
        places.append(opt.ask())
        opt.tell(places[-1], f(places[-1]))
    return np.array(places)


@pytest.mark.parametrize("n_init", [3, 12])
def test_all_are_asked_for_before_one_is_again(small, n_init):
    opt = Optimizer([(0, 2), (-1.5, 2.9)], integrality=True, n_init=n_init, model=small, random_state=0)
    places = asked(opt, 12)
    assert len(np.unique(places, axis=0)) == 12
    assert np.array_equal(np.unique(places[:, 0]), [0, 1, 2]) and np.array_equal(np.unique(places[:, 1]), [-1, 0, 1, 2])
    assert tuple(opt.ask()) in set(map(tuple, places))  # all are known, and may be noisy


def test_zero_has_no_sign():
    box = Box(np.array([-1.0]), np.array([1.0]), np.array([True]))
    assert not np.signbit(box.places(np.array([[0.49]]))).any()


def test_the_last_of_many_are_found(small):
    """Which candidates by chance may all miss."""
    places = np.stack(np.meshgrid(*[np.arange(30.0)] * 2), axis=-1).reshape(-1, 2)
    left = [3, 77, 400, 711, 899]
    told = np.delete(places, left, axis=0)
    opt = Optimizer([(0, 29), (0, 29)], integrality=True, n_init=3, model=small, random_state=0)
    opt.tell(told, np.sum(told**2, axis=1))
    assert {tuple(x) for x in asked(opt, 5)} == {tuple(x) for x in places[left]}


def test_others_are_any_numbers(small):
    opt = Optimizer([(0, 3), (0, 3)], integrality=[True, False], n_init=3, model=small, random_state=0)
    places = asked(opt, 8)
    assert np.array_equal(places[:, 0], np.round(places[:, 0])) and len(np.unique(places[:, 1] % 1)) == 8
    opt.tell([2.0, 0.7], 1.0)
    with pytest.raises(ValueError, match=r"whole numbers in the coordinates \[0\]; got"):
        opt.tell([2.5, 0.7], 1.0)


def test_of_a_million_whole_numbers_neighbours_are_different(small):
    opt = Optimizer([(0, 10**6)], integrality=True, n_init=3, model=small, random_state=0)
    for outside in (5.4, 10**6 + 7, -8):
        with pytest.raises(ValueError, match="must lie within the bounds"):
            opt.tell([outside], 3.0)
    first, second = opt.ask(), opt.ask()
    opt.tell(first + 6, 1.0)
    assert len(opt._open) == 2, "another number answers nothing"
    opt.tell(first, 2.0)
    opt.forget(second)
    assert not opt._open
    assert opt._asked(opt.box.cube(np.stack([first, first + 1]))).tolist() == [True, False]


def test_answers_belong_to_their_questions(small):
    opt = Optimizer([(0, 30)], integrality=[True], n_init=2, model=small, random_state=0)
    first, second = opt.ask(), opt.ask()
    assert first != second
    opt.tell(second, 1.0)
    opt.tell(first, 2.0)
    assert not opt._open and opt.result().x == second


def test_the_lowest_of_many_is_found_soon():
    """By the shipped model, among 961 places; by chance it takes 25 evaluations one time in 38."""

    def bowl(x):
        return (x[0] - 7) ** 2 / 50 + (x[1] + 3) ** 2 / 20

    found = minimize(bowl, [(-15, 15), (-15, 15)], 5, 20, integrality=True, random_state=0)
    assert found.fun == 0 and np.array_equal(found.x, [7, -3]) and len(np.unique(found.x_iters, axis=0)) == 25


@given(st.integers(-1000, 1000), st.integers(0, 50), st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_each_number_has_the_same_share_of_the_cube(low, more, place):
    box = Box(np.array([float(low)]), np.array([float(low + more)]), np.array([True]))
    x = box.places(np.array([place])).item()
    assert x == round(x) and low <= x <= low + more
    assert abs(box.cube(np.array([x])).item() - place) <= 0.5 / (more + 1) + 1e-9
    middles = (np.arange(more + 1) + 0.5) / (more + 1)
    assert np.array_equal(box.places(middles[:, None])[:, 0], low + np.arange(more + 1))


@pytest.mark.parametrize(
    ("bounds", "integrality", "words"),
    [
        ([(0.2, 0.8)], True, "Pair 0 of `bounds` holds no whole number"),
        ([(0, 1), (0, 1)], [True], "`integrality` must say whether each of the 2 coordinates"),
        ([(0, 1)], [2], "`integrality` must say"),
        ([(0, 1)], "yes", "`integrality` must say"),
    ],
)
def test_what_cannot_be(bounds, integrality, words, small):
    with pytest.raises(ValueError, match=words):
        npax.bayesopt.Optimizer(bounds, integrality=integrality, model=small)
