"""What a search learns of its model from the answers: how certain it may be taken to be."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from npax.bayesopt import AbstractSurrogate, Optimizer
from npax.bayesopt.record import TRUST, WORST, Foreseen, Record
from npax.bayesopt.scale import Scale
from npax.bayesopt.surrogate import RescaledSurrogate

PLAIN = Scale(median=0.0, spread=1e6, mean=0.0, std=1e-6)
"""Values as they are, up to a thousandth of a thousandth."""


def recorded(answers, mean=0.0, std=1.0, share=1.0):
    record = Record()
    for y in answers:
        record.add(Foreseen(mean, std, share, PLAIN), y)
    return record.factor


def test_it_begins_with_the_model_and_ends_with_the_answers(rng):
    assert Record().factor == 1.0
    z = rng.normal(size=7)
    assert recorded(z) == pytest.approx(math.sqrt((TRUST + np.sum(z**2)) / (TRUST + 7)), rel=1e-5)
    assert recorded(3 + 0.5 * z, mean=3.0, std=0.5) == pytest.approx(recorded(z), rel=1e-5)
    assert recorded(0.5 * rng.normal(size=4000)) == pytest.approx(0.5, rel=0.05)


def test_under_noise_answers_say_little(rng):
    noise = rng.normal(size=20)
    assert recorded(0.3 * noise, share=0.05) == pytest.approx(1.0, abs=0.03)
    assert recorded(0.3 * noise, share=0.0) == 1.0
    assert recorded(0.3 * noise, share=1.0) < 0.6


def test_one_leap_is_no_rule_and_failures_say_nothing():
    leap = math.sqrt((TRUST + WORST**2) / (TRUST + 1))
    assert recorded([1e30]) == recorded([-50.0]) == pytest.approx(leap)
    assert recorded([np.nan, np.inf, -np.inf]) == 1.0
    assert recorded([1.0], std=0.0) == pytest.approx(leap)
    assert recorded([0.0], std=0.0) == pytest.approx(math.sqrt(TRUST / (TRUST + 1)))


class Known(AbstractSurrogate):
    def moments(self, seen, xt):
        return xt[:, 0], xt[:, 1]

    def sample(self, seen, xt, key):
        return xt[:, 0] + xt[:, 1] * jr.normal(key, xt.shape[:1])


def test_a_rescaled_belief_has_its_means_and_other_deviations():
    xt = jnp.array([[1.0, 0.5], [-2.0, 3.0]])
    belief = RescaledSurrogate(Known(), jnp.float32(0.25))
    mean, std = belief.moments(None, xt)
    np.testing.assert_allclose(mean, [1.0, -2.0])
    np.testing.assert_allclose(std, [0.125, 0.75])
    draws = jax.jit(jax.vmap(lambda key: belief.sample(None, xt, key)))(jr.split(jr.key(0), 4000))
    np.testing.assert_allclose(draws.mean(0), [1.0, -2.0], atol=0.05)
    np.testing.assert_allclose(draws.std(0), [0.125, 0.75], rtol=0.05)


def test_answers_where_they_were_asked_for_are_compared(small):
    opt = Optimizer([(0, 1)], n_init=2, model=small, random_state=0)
    for y in (1.0, 3.0):
        opt.tell(opt.ask(), y)
    assert opt._record.weight == TRUST, "nothing was foreseen of the first ones"
    x = opt.ask()
    (foreseen,) = opt._foreseen
    opt.tell(x, 2.0)
    expected = Record()
    expected.add(foreseen, 2.0)
    assert opt._record.factor == expected.factor != 1.0 and not opt._foreseen

    weight = opt._record.weight
    opt.tell([0.123], 2.0)  # nobody asked
    opt.forget(opt.ask())
    opt.ask()
    opt.tell([0.456], 2.0)  # made elsewhere
    assert opt._record.weight == weight and not opt._foreseen


def test_of_two_questions_at_one_place_each_answer_is_compared(small, monkeypatch):
    opt = Optimizer([(0, 1)], n_init=2, model=small, random_state=0)
    for y in (1.0, 3.0):
        opt.tell(opt.ask(), y)
    places = [np.array([0.5])] * 2
    monkeypatch.setattr(opt, "_next", lambda: opt.box.cube(places[0]))
    assert np.array_equal([opt.ask(), opt.ask()], places)
    weights = [opt._record.weight]
    for y in (2.0, 2.5):
        opt.tell([0.5], y)
        weights.append(opt._record.weight)
    assert weights[0] < weights[1] < weights[2] and not opt._foreseen


def test_an_answer_of_known_error_says_the_less_the_larger_it_is(rng):
    z = rng.normal(size=2000)
    record = Record()
    for value in math.hypot(1.0, 2.0) * z:  # of the function and of the error together
        record.add(Foreseen(0.0, 1.0, 1.0, PLAIN), value, 2.0)
    assert record.factor == pytest.approx(1.0, rel=0.1)
    assert record.weight == pytest.approx(TRUST + 2000 / 25)
    record.add(Foreseen(0.0, 1.0, 1.0, PLAIN), 5.0, 1e30)
    assert record.weight == pytest.approx(TRUST + 2000 / 25)
