"""Searches by the shipped model on functions whose minima are known, what they say of them, and what they refuse."""

import pickle
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import untrained
from scipy.optimize import Bounds
from scipy.spatial.distance import pdist

import npax
from npax.bayesopt import ConfidenceBound, FailedEvaluation, Optimizer, RandomSearch, minimize, optimizer
from npax.bayesopt.scale import Scale


def quadratic(x):
    return float(np.sum((x - 0.3) ** 2))


def branin(x):
    a, b = x
    return (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


BRANIN = [(-5, 10), (0, 15)]


@pytest.fixture(scope="module")
def shipped():
    return npax.load("gp-universal")


@pytest.mark.usefixtures("optimised")
def test_a_parabola(shipped):
    """Half of twelve searches at least; how near a single one comes in eight evaluations is a matter of its start."""
    options = {"n_init": 4, "n_iter": 4, "model": shipped}
    results = [minimize(quadratic, [(-1, 2)], **options, random_state=seed) for seed in range(12)]
    assert np.median([result.fun for result in results]) < 1e-3
    assert np.median([abs(result.x[0] - 0.3) for result in results]) < 0.03
    result = results[0]
    assert result.x_iters.shape == (8, 1) and result.func_vals.shape == (8,) and result.nfev == 8
    assert result.success and result.message
    np.testing.assert_array_equal(result.func_vals, [quadratic(x) for x in result.x_iters])
    assert result.fun == result.func_vals.min() == quadratic(result.x)


@pytest.mark.usefixtures("optimised")
def test_branin_is_found_faster_than_by_chance(shipped):
    def gaps(rule):
        options = {"n_init": 6, "n_iter": 24, "acquisition": rule, "model": shipped}
        return [minimize(branin, BRANIN, random_state=seed, **options).fun - 0.397887 for seed in range(3)]

    found, chance = gaps("ei"), gaps(RandomSearch())
    assert min(found) >= 0 and max(found) < 0.5 and scipy.stats.gmean(found) < scipy.stats.gmean(chance) / 2


@pytest.mark.parametrize(("acquisition", "n_iter"), [("ucb", 6), ("thompson", 3), (ConfidenceBound(1.0), 5)])
def test_other_acquisitions(acquisition, n_iter, shipped):
    options = {"n_init": 4, "n_iter": n_iter, "acquisition": acquisition, "model": shipped}
    assert minimize(quadratic, [(-1, 2)], random_state=0, **options).fun < 2e-3  # the first four give 5e-3


def test_the_same_seed_asks_the_same_questions(small):
    run = lambda seed: minimize(branin, BRANIN, n_init=3, n_iter=3, model=small, random_state=seed)  # noqa: E731
    np.testing.assert_array_equal(run(0).x_iters, run(0).x_iters)
    assert not np.array_equal(run(0).x_iters, run(1).x_iters)


def test_noise_is_seen_through(shipped):
    rng = np.random.default_rng(0)
    noisy = lambda x: 10 * quadratic(x) + rng.normal()  # noqa: E731
    result = minimize(noisy, [(-1, 2)], n_init=8, n_iter=4, model=shipped, random_state=0)
    assert abs(result.x_model[0] - 0.3) < 0.35
    assert result.fun < -0.3 and abs(result.fun_model) < 1.0  # the lowest value is luck, the belief is not


def test_failures_are_left_out(small):
    def f(x):
        return np.nan if x[0] < 0 else x[0]

    with pytest.warns(FailedEvaluation, match="1 of 1 values NaN or infinite, first at x"):
        result = minimize(f, [(-1, 1)], n_init=4, n_iter=4, model=small, random_state=0)
    assert result.nfev == 8 and 0 < len(result.func_vals) < 8 and np.isfinite(result.fun)
    assert result.success and (result.x_iters >= 0).all()


def test_what_is_masked_has_failed(small):
    opt = Optimizer([(0, 1)], model=small)
    with pytest.warns(FailedEvaluation, match="1 of 2 values NaN or infinite"):
        opt.tell([[0.2], [0.4]], np.ma.array([1.0, -9.0], mask=[False, True]))
    with pytest.warns(FailedEvaluation, match="1 of 1"):
        opt.tell([0.6], np.ma.masked)
    result = opt.result()
    assert result.nfev == 3 and result.fun == 1.0 and len(result.func_vals) == 1


def test_nothing_but_failures(small):
    with pytest.warns(FailedEvaluation):
        result = minimize(lambda x: np.inf, [(-1, 1)], n_init=2, n_iter=2, model=small, random_state=0)
    assert not result.success and np.isnan(result.fun) and result.nfev == 4 and result.x_iters.shape == (0, 1)
    assert result.message == "No evaluation had a finite value."


def test_the_search_leaves_where_it_fails(shipped):
    """Half of the box fails, the better one: most evaluations are in the other."""

    def f(x):
        return np.nan if x[0] < 0.4 else x[0]

    with pytest.warns(FailedEvaluation):
        result = minimize(f, [(0, 1)], n_init=4, n_iter=8, model=shipped, random_state=0)
    assert len(result.func_vals) >= 7 and result.fun < 0.5


def test_an_interrupt_returns_what_is_known(small):
    values = iter([3.0, 1.0, 2.0])

    def f(x):
        value = next(values, None)
        if value is None:
            raise KeyboardInterrupt
        return value

    result = minimize(f, [(0, 1)], model=small, random_state=0)
    assert not result.success and result.message == "Interrupted."
    np.testing.assert_array_equal(result.func_vals, [3, 1, 2])
    assert result.fun == result.fun_model == 1  # the model was not used yet, and is not compiled now


def test_a_second_interrupt_loses_nothing_either(small, monkeypatch):
    def interrupted(*anything):
        raise KeyboardInterrupt

    monkeypatch.setattr(Optimizer, "recommend", interrupted)
    result = minimize(quadratic, [(0, 1)], n_init=2, n_iter=1, model=small, random_state=0)
    assert len(result.func_vals) == 3 and result.fun_model == result.fun


def test_an_exception_carries_what_is_known(small):
    def f(x):
        if len(seen) == 2:
            raise RuntimeError("the oven is cold")
        seen.append(x)
        return 1.0

    seen = []
    with pytest.raises(RuntimeError, match="the oven is cold") as caught:
        minimize(f, [(0, 1)], model=small)
    assert caught.value.result.nfev == 2 and not caught.value.result.success


def stop_by_iteration(result):
    if result.nfev == 3:
        raise StopIteration


@pytest.mark.parametrize("callback", [lambda result: result.nfev == 3, stop_by_iteration])
def test_a_callback_ends_the_search(callback, small):
    result = minimize(quadratic, [(0, 1)], model=small, callback=callback, random_state=0)
    assert result.nfev == 3 and result.success and "callback" in result.message


def test_a_callback_that_cannot_be_called_is_named_before_any_evaluation(small, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users run it
    asked = []
    with pytest.raises(TypeError, match="`callback` must be a function of the result so far, or None; got 3"):
        minimize(asked.append, [(0, 1)], model=small, callback=3)
    assert not asked


@pytest.mark.parametrize("as_array", [np.atleast_1d, jnp.asarray, np.float32, lambda y: int(100 * y)])
def test_one_number_comes_in_many_forms(as_array, small):
    result = minimize(lambda x: as_array(quadratic(x)), Bounds([0, 0], [1, 2]), 2, 0, model=small)
    assert isinstance(result.fun, float) and result.x.shape == (2,)


def test_f_may_not_change_the_question(small):
    def f(x):
        x += 5
        return 1.0

    assert minimize(f, [(0, 1)], 3, 0, model=small).x_iters.max() <= 1


def test_a_regressor_lends_its_model(small):
    run = lambda model: minimize(quadratic, [(0, 1)], 2, 1, model=model, random_state=0)  # noqa: E731
    np.testing.assert_array_equal(run(npax.NeuralProcessRegressor(small)).x_iters, run(small).x_iters)
    reg = npax.NeuralProcessRegressor("gp-universal")
    reg.model_ = small  # what fine-tuning leaves in a regressor
    assert Optimizer([(0, 1)], model=reg).surrogate.model is small


def test_ask_and_tell(small):
    opt = Optimizer([(0, 1), (10, 20)], n_init=3, model=small, random_state=0)
    opt.tell([[0.5, 15.0], [0.1, 11.0]], [1.0, 2.0])  # known before: they count
    first = opt.ask()
    opt.tell(first, 3.0)
    open_questions = [opt.ask() for _ in range(3)]
    assert len(np.unique(open_questions, axis=0)) == 3
    assert all(opt.box.holds(x) for x in open_questions)
    again = pickle.loads(pickle.dumps(opt))
    np.testing.assert_array_equal(again.ask(), opt.ask())
    opt.tell(open_questions[1], -1.0)
    result = opt.result()
    assert result.nfev == 4 and result.fun == -1.0 and np.array_equal(result.x, open_questions[1])


def test_errors_in_another_order_than_their_values_are_refused():
    opt, values = Optimizer([(0, 1)], model=untrained.hearing(3), random_state=0), pd.Series([1.0, 2.0])
    with pytest.raises(ValueError, match="`y` and `error` have the same labels in another order"):
        opt.tell([[0.2], [0.4]], values, error=pd.Series([0.1, 0.3])[::-1])
    opt.tell([[0.2], [0.4]], values, error=pd.Series([0.1, 0.3]))
    assert opt.result().nfev == 2


def test_open_questions_keep_the_next_ones_away(shipped):
    """Until it is answered, a question is not asked again nearby; forgetting it would."""
    opt = Optimizer([(0, 1)], n_init=5, model=shipped, random_state=0)
    x = np.linspace(0, 1, 5)
    opt.tell(x[:, None], (x - 0.4) ** 2)
    first, second = opt.ask()[0], opt.ask()[0]
    forgetful = Optimizer([(0, 1)], n_init=5, model=shipped, random_state=1)
    forgetful.tell(x[:, None], (x - 0.4) ** 2)
    assert abs(first - second) > 2 * abs(first - forgetful.ask()[0])


def test_an_open_question_counts_as_answered_by_what_is_predicted(shipped):
    """So it takes away what is not known around it, and bends nothing: a value that is not to be expected there, the
    negative control, does."""
    opt = Optimizer([(0, 1)], n_init=5, model=shipped, random_state=0)
    x = np.linspace(0, 1, 8)
    opt.tell(x[:, None], (x - 0.4) ** 2)
    places = jnp.asarray(opt._seen([])[2](np.linspace(0.02, 0.98, 40)[:, None]))

    def believed(seen):
        return [np.asarray(a) for a in opt.surrogate.moments(seen, places)]

    seen, _, _ = opt._seen([np.array([0.45])])
    (before, unsure), (after, surer) = believed(opt._seen([])[0]), believed(seen)
    wrong, _ = believed(eqx.tree_at(lambda seen: seen.y, seen, seen.y.at[8].set(jnp.median(seen.y[:8]))))
    assert surer[18] < 0.9 * unsure[18]
    assert np.abs(after - before).max() < 0.2 * np.abs(wrong - before).max()


def test_while_all_values_are_the_same_places_are_spread(small):
    opt = Optimizer([(0, 1)] * 2, n_init=3, model=small, random_state=0)
    for _ in range(20):
        opt.tell(opt.ask(), 5.0)
    assert pdist(opt.result().x_iters).min() > 0.05 and not opt.used
    opt.tell(opt.ask(), 4.0)
    opt.ask()
    assert opt.used


@pytest.mark.usefixtures("optimised")
def test_no_place_is_asked_for_again(shipped):
    """The corner of a box is where searches of monotone functions end up."""
    for f, bounds in ((lambda x: x[0], [(0, 1)]), (lambda x: x[0] + 2 * x[1], [(0, 1)] * 2)):
        result = minimize(f, bounds, n_init=5, n_iter=12, model=shipped, random_state=0)
        assert len(np.unique(result.x_iters, axis=0)) == 17 and result.fun < 1e-3


def test_open_questions_are_not_believed(shipped):
    opt = Optimizer([(0, 1)], n_init=5, model=shipped, random_state=0)
    x = np.linspace(0, 1, 8)
    opt.tell(x[:, None], 10 * (x - 0.3) ** 2)
    before = opt.recommend()
    for _ in range(3):
        opt.ask()
    np.testing.assert_array_equal(np.hstack(opt.recommend()), np.hstack(before))


@pytest.mark.parametrize("acquisition", ["ei", "ucb", "thompson"])
def test_searches_in_float64(acquisition, small):
    """Of JAX: others in the same program may need it."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        result = minimize(quadratic, [(0, 1)], 2, 2, model=small, acquisition=acquisition, random_state=0)
    assert result.nfev == 4


@pytest.mark.parametrize("y", [np.r_[0.0, 1, 2, 5, 1e9], np.full(4, 2.0), np.r_[0.0, 0, 0, 7], np.r_[3.0]])
def test_the_scale_keeps_the_order_and_can_be_undone(y):
    scale = Scale.of(y)
    assert np.isfinite(scale(y)).all() and (np.diff(scale(y)) >= 0).all()
    np.testing.assert_allclose(scale.undo(scale(y)), y, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "y", [np.r_[0.0, 0.1, 0.2, 0.3, 1.7e308], np.r_[0.0, 0, 0, 1.7e308], np.r_[1.0, 2, [1.7e308] * 4]]
)
def test_the_largest_float_is_a_penalty_like_others(y):
    scale = Scale.of(y)
    assert np.isfinite(scale(y)).all() and (np.diff(scale(y)) >= 0).all()
    assert scale(y)[0] < scale(y)[-1] - 1
    if y[2] < 1:
        np.testing.assert_allclose(scale.undo(scale(y))[:3], y[:3], atol=1e-6)


@pytest.mark.parametrize("penalty", [1e3, 1e10, 1.7e308])
def test_penalties_hide_no_good_values_however_many_there_are(penalty):
    """Those in the majority, too: what is left is seen as though they were just above it."""
    good = np.array([1e-5, 0.01, 0.02, 0.5])
    y = np.r_[good, [penalty] * 12]
    scale = Scale.of(y)
    assert (np.diff(scale(y)[:5].astype(np.float32)) > 1e-3).all() and np.ptp(scale(y)[4:]) == 0
    np.testing.assert_allclose(scale(y), Scale.of(np.r_[good, [1.0 - 1e-5] * 12])(np.minimum(y, 1.0 - 1e-5)), atol=1e-6)
    np.testing.assert_allclose(scale.undo(scale(y))[:4], good, atol=1e-6)
    alone = np.r_[good, penalty]  # may be a value
    assert Scale.of(alone)(alone)[-1] > Scale.of(alone)(alone)[-2]


def test_whole_numbers_of_any_size_and_short_ones_are_values():
    opt = npax.bayesopt.Optimizer([(0, 1)])
    opt.tell([0.5], 10**20)
    opt.tell([0.6], jnp.bfloat16(0.25))
    assert opt.result().func_vals.tolist() == [1e20, 0.25]
    with pytest.warns(FailedEvaluation, match="NaN or infinite"):
        opt.tell([0.7], -(10**400))
    assert minimize(lambda x: 10**30, [(0, 1)], n_init=2, n_iter=0).fun == 1e30
    with pytest.raises(ValueError, match=r"`x` must hold real numbers, one for each coordinate; got \['a'\]"):
        opt.tell(["a"], 1.0)
    with pytest.raises(ValueError, match="must lie within the bounds"):
        opt.tell(np.ma.array([[0.1], [0.2]], mask=[[0], [1]]), [1.0, 2.0])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bounds": [(1, 0)]}, ValueError, "Pair 0 .* low < high"),
        ({"bounds": [(0, 1), (0, np.inf)]}, ValueError, "Pair 1"),
        ({"bounds": (0, 1)}, ValueError, r"\[\(low, high\), ...\]"),
        ({"bounds": []}, ValueError, "one pair for each coordinate"),
        ({"bounds": [(0, 1, 2)]}, ValueError, "one pair for each coordinate"),
        ({"bounds": [("a", "b")]}, ValueError, "pairs of numbers"),
        ({"bounds": [(0, 1)] * 4}, ValueError, "up to 3 coordinates, got 4"),
        ({"random_state": -1}, ValueError, "`random_state` must be a whole number from 0 on.*got -1"),
        ({"random_state": "a"}, TypeError, "`random_state` must be a whole number from 0 on.*got 'a'"),
        ({"n_init": 0}, ValueError, "`n_init` must be a whole number, at least 1"),
        ({"n_iter": -5}, ValueError, "`n_iter` must be a whole number, at least 0; got -5"),
        ({"acquisition": "pi"}, ValueError, '"ei", "ucb", "thompson"'),
        ({"acquisition": 3}, TypeError, "acquisition"),
        ({"model": "gp-local"}, FileNotFoundError, "gp-universal"),
        ({"model": 3}, TypeError, "`model`"),
        ({"f": lambda x: None}, TypeError, "one number, got None"),
        ({"f": lambda x: "3"}, TypeError, "one number"),
        ({"f": lambda x: 1j}, TypeError, "one number"),
        ({"f": lambda x: np.ones(2)}, TypeError, "one number"),
        ({"f": lambda x: object()}, TypeError, "real numbers"),
    ],
)
def test_bad_input_is_named(options, error, words, small):
    arguments = {"f": quadratic, "bounds": [(0, 1)], "n_init": 2, "n_iter": 0, "model": small, **options}
    with pytest.raises(error, match=words):
        minimize(**arguments)


@pytest.mark.parametrize(
    ("x", "y", "error", "words"),
    [
        ([2.0], 1.0, ValueError, "within the bounds"),
        ([0.5, 0.5], 1.0, ValueError, r"must have the shape \(1,\)"),
        ([[0.5]], [1.0, 2.0], ValueError, r"must have the shape \(2, 1\)"),
        ([np.nan], 1.0, ValueError, "within the bounds"),
        ([0.5], "1", TypeError, "real numbers"),
        ([0.5], None, TypeError, "real numbers"),
    ],
)
def test_bad_answers_are_named(x, y, error, words, small):
    with pytest.raises(error, match=words):
        Optimizer([(0, 1)], model=small).tell(x, y)


def test_a_rounded_place_answers_its_question(small):
    opt = Optimizer([(-5, 10), (1e6, 1e6 + 15)], n_init=2, model=small, random_state=0)
    for _ in range(4):
        opt.tell(opt.ask().astype(np.float32), 1.0)
    assert not opt._open and opt.result().nfev == 4
    opt.tell(np.float32([-5, 1e6]) - np.float32([1e-5, 0]), 1.0)
    assert (opt.result().x_iters >= [-5, 1e6]).all()
    first, second = opt.ask(), opt.ask()
    opt.tell(np.add(first, [0.1, 0.0]), 1.0)
    assert len(opt._open) == 2, "another place answers nothing"
    opt.forget(first)
    np.testing.assert_array_equal(opt._open, [second])
    with pytest.raises(ValueError, match="no open question at x"):
        opt.forget(first)
    for wrong in (second[0], np.append(second, 0.0)):
        with pytest.raises(ValueError, match=r"`x` must have the shape \(2,\), got"):
            opt.forget(wrong)


def test_a_box_far_from_zero_is_searched_like_another(shipped):
    """Seconds since 1970, for one; the values and differences are exact here."""

    def searched(start):
        bounds = [(start - 2, start + 2), (start - 1, start + 1)]
        return minimize(
            lambda x: branin((x - start) * 4 + 4), bounds, n_init=6, n_iter=3, model=shipped, random_state=0
        )

    near, far = searched(0.0), searched(2.0**24)
    assert np.allclose(near.func_vals, far.func_vals, rtol=1e-3)


@pytest.mark.usefixtures("optimised")
def test_along_a_line_a_search_looks_closer_at_the_best(shipped, monkeypatch):
    """Forrester's function, of which the whole box shows too little."""
    lowest, options = -6.020740055767083, {"n_init": 6, "n_iter": 12, "model": shipped, "random_state": 0}

    def forrester(x):
        return (6 * x[0] - 2) ** 2 * np.sin(12 * x[0] - 4)

    closer = minimize(forrester, [(0, 1)], **options).fun - lowest
    monkeypatch.setattr(optimizer, "NEAREST", 100)
    assert closer < 1e-5 < minimize(forrester, [(0, 1)], **options).fun - lowest


def test_what_lies_around_the_best_is_a_search_of_its_own(small):
    opt = Optimizer([(-5, 10)], n_init=2, model=small, random_state=0)
    opt.tell(np.arange(6.0)[:, None], np.arange(6.0) + 1)
    assert opt._closer() is None, "too few"
    with pytest.warns(FailedEvaluation):
        opt.tell([[0.5], [0.7], [9.0]], [-1.0, np.nan, 3.0])
    inner = opt._closer()
    assert (inner.box.low, inner.box.high) == (
        -3.0,
        4.0,
    )  # as far as the seventh nearest to 0.5, the failed one among them
    assert sorted(x.item() for x, *_ in inner._told) == [0.0, 0.5, 0.7, 1.0, 2.0, 3.0, 4.0]
    for _ in range(2):  # of the whole, of the part
        assert -5 <= opt.ask().item() <= 10


def test_places_far_outside_a_narrow_box_are_refused(small):
    opt = Optimizer([(1e9, 1e9 + 1)], n_init=2, model=small, random_state=0)
    opt.ask()
    with pytest.raises(ValueError, match="must lie within the bounds"):
        opt.tell([1e9 - 50], 1.0)
    assert len(opt._open) == 1


def test_whole_numbers_are_told_where_they_are(small):
    opt = Optimizer([(1, 20), (0, 10)], n_init=2, model=small, random_state=0)
    for _ in range(5):
        opt.tell(np.round(opt.ask()), 1.0)
    assert not opt._open and (opt.result().x_iters % 1 == 0).all()
    opt.ask()
    opt.tell([[3.0, 4.0], [5.0, 6.0]], [1.0, 2.0])
    assert len(opt._open) == 1, "what is known from before answers nothing"


def test_generators_old_and_new_may_choose_the_places(small):
    for kind in (np.random.default_rng, np.random.RandomState):
        first, second = (Optimizer([(0, 1)], model=small, random_state=kind(3)).ask() for _ in range(2))
        assert np.array_equal(first, second)


@pytest.mark.parametrize("integrality", [None, [True, False]])
def test_a_search_that_is_taken_up_again_goes_on(small, integrality):
    """With the same seed: what was told from before was asked for once more."""
    box = {"bounds": [(-5, 10), (0, 15)], "integrality": integrality, "model": small, "random_state": 0}
    whole, first = Optimizer(**box), Optimizer(**box)
    expected = []
    for _ in range(10):
        expected.append(whole.ask())
        whole.tell(expected[-1], np.sum(expected[-1]))
    first.tell(np.array(expected[:6]), np.sum(expected[:6], axis=1))
    found = []
    for _ in range(4):
        found.append(first.ask())
        first.tell(found[-1], np.sum(found[-1]))
    np.testing.assert_array_equal(found, expected[6:])


def test_one_value_answers_one_question(small):
    opt = Optimizer([(0, 1)], model=small, random_state=0)
    opt._open, opt._foreseen = [np.array([0.5]), np.array([0.5])], [None, None]
    opt.tell([0.5], 1.0)
    assert len(opt._open) == 1


def test_chance_looks_nowhere_closely(small):
    options = {"n_init": 2, "n_iter": 30, "model": small, "random_state": 0}
    result = minimize(quadratic, [(-1, 2)], acquisition=RandomSearch(), **options)
    assert np.max(np.diff(np.sort(result.x_iters[:, 0]))) < 3 / 32 * 3, "as even as a Sobol sequence"


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ({"model": "field-universal"}, ValueError, "`model` is one of pictures"),
    ],
)
def test_arguments_that_would_mislead_are_refused(wrong, kind, words):
    with pytest.raises(kind, match=words):
        Optimizer(BRANIN, **wrong)


def test_a_place_that_failed_is_not_recommended(small, monkeypatch):
    falling = lambda surrogate, seen, x: -np.arange(len(x))  # noqa: E731
    monkeypatch.setattr(sys.modules[Optimizer.__module__], "_means", falling)
    opt = Optimizer([(0, 1)], model=small, random_state=0)
    with pytest.warns(FailedEvaluation):
        opt.tell(np.array([[0.2], [0.5], [0.8]]), np.array([1.0, 2.0, np.nan]))
    assert opt.recommend()[0] == 0.5
