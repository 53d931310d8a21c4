"""The training loop."""

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
import pytest
from laws import MODELS, finite
from sines import Sines, fingerprint, tiny, train
from untrained import untrained

import npax
from npax import devices
from npax.files import held
from npax.likelihoods import FunctionAndNoise
from npax.models.presets import field_universal, gp_universal
from npax.tasks import AbstractTasks, AsPrior, Curriculum, GPPosteriorTask, GPTask, RBFPrior, Stage
from npax.training import presets
from npax.training.checkpoint import checkpoints
from npax.training.checks import check_drawn, check_precision
from npax.training.fit import _contents
from npax.training.optimizers import warmup_cosine, warmup_stable_decay
from npax.training.program import _program
from npax.training.resume import _code, _updates

TOLD_APART = FunctionAndNoise(1)


def test_training_lowers_the_loss_and_the_same_key_gives_the_same_bytes():
    result = train(48)
    assert result.losses.shape == (48,) and result.steps == 48 and result.skipped == 0 and result.seconds > 0
    assert result.losses[-6:].mean() < result.losses[:3].mean() - 0.2
    assert result.models == [result.model]
    assert fingerprint(train(48).model) == fingerprint(result.model)


def test_a_second_fit_alike_compiles_nothing():
    traced = []

    def objective(model, task, key):
        traced.append(task)
        return npax.objectives.nll(model, task, key)

    train(4, objective=objective)
    first = len(traced)
    train(4, objective=objective, tasks=Sines(broken=1e-6), key=jr.key(4))
    assert len(traced) == first > 0
    train(6, objective=objective)  # another schedule
    assert len(traced) > first


def test_parts_of_any_length_are_of_one_program(tmp_path):
    _program.clear_cache()
    whole = train(5, checkpoint=tmp_path / "whole")
    assert whole.losses.shape == (5,) and np.isfinite(whole.losses).all() and _program._cache_size() == 1
    with pytest.raises(KeyboardInterrupt):
        train(5, checkpoint=tmp_path / "stopped", callback=stop_at(4))
    resumed = train(5, checkpoint=tmp_path / "stopped")
    assert fingerprint(resumed.model) == fingerprint(whole.model) and _program._cache_size() == 1
    assert np.array_equal(resumed.losses, whole.losses[4:])


def stop_at(step):
    def callback(done, losses):
        assert len(losses) == 2
        if done == step:
            raise KeyboardInterrupt

    return callback


class Weighted(eqx.Module):
    """An objective with an array of numpy's."""

    weight: np.ndarray

    def __call__(self, model, task, key):
        return self.weight * npax.objectives.nll(model, task, key)


def test_objectives_may_hold_arrays_of_numpy():
    once, twice = (train(4, objective=Weighted(np.full((), weight, np.float32))) for weight in (1, 2))
    assert np.isclose(2 * once.losses[0], twice.losses[0], rtol=1e-5)


def test_the_same_arguments_give_the_same_optimizer():
    for make in (npax.training.muon, npax.training.adamw, npax.training.yogi):
        assert make(10) is make(steps=10) is not make(11)
    assert npax.training.muon(10) is npax.training.muon(10, 1e-2, schedule=None)

    class Schedule:
        __hash__ = None

        def __call__(self, steps, peak):
            return peak

    assert npax.training.muon(10, schedule=Schedule()).update is not None


def test_the_first_step_is_one():
    before = tiny(jr.key(0))
    after = npax.fit(before, Sines(), steps=1, batch_size=2, key=jr.key(0)).model
    assert fingerprint(after) != fingerprint(before)


def test_muon_knows_what_enters_a_matrix_and_what_leaves_it():
    """Weights of Equinox's layers are from right to left."""
    gradient = jr.normal(jr.key(0), (16, 64))
    own = npax.blocks.Linear(16, 64, key=jr.key(1))
    other = eqx.nn.Linear(16, 64, key=jr.key(1))
    updates = []
    for layer, of_weight in ((own, gradient), (other, gradient.T)):
        params = eqx.filter(layer, eqx.is_array)
        grads = eqx.tree_at(lambda layer: layer.weight, jax.tree.map(jnp.zeros_like, params), of_weight)
        optimizer = npax.training.muon(10)
        with jax.numpy_dtype_promotion("standard"):  # for optax
            updates.append(jax.jit(optimizer.update)(grads, optimizer.init(params), params)[0].weight)
    assert np.allclose(updates[0], updates[1].T, rtol=1e-4, atol=1e-7) and jnp.any(updates[0] != 0)


@pytest.mark.parametrize("make", [npax.training.muon, npax.training.adamw])
def test_without_gradients_nothing_but_weights_decays(make):
    """Random features stay as they were drawn."""
    params = eqx.filter(MODELS["perf"](jr.key(0)), eqx.is_array)
    optimizer = make(100, 1.0)
    nothing = jax.tree.map(jnp.zeros_like, params)

    @jax.jit
    def second_update(params):
        _, state = optimizer.update(nothing, optimizer.init(params), params)  # a warm-up begins with no step
        return optimizer.update(nothing, state, params)[0]

    with jax.numpy_dtype_promotion("standard"):  # for optax
        updates = second_update(params)
    moved = {}
    for path, update in jax.tree.leaves_with_path(updates):
        moved.setdefault(path[-1].name, []).append(bool(jnp.any(update != 0)))
    assert "projection" in moved and not any(any(m) for name, m in moved.items() if name != "weight")
    assert all(moved["weight"]) == (make is npax.training.adamw)


def test_optimisers_that_read_the_loss_are_told_it():
    """One that halves the rate wherever the loss does not fall by nine tenths."""
    patient = optax.contrib.reduce_on_plateau(factor=0.5, patience=1, rtol=0.9)
    result, plain = (train(8, optimizer=optax.chain(optax.sgd(0.1), *more)) for more in ([patient], []))
    assert np.isfinite(result.losses).all() and fingerprint(result.model) != fingerprint(plain.model)


def test_a_model_of_another_class_is_not_taken_for_a_function(monkeypatch):
    class Other(eqx.Module):
        def condition(self, xc, yc, mask=None):
            return None

        def __call__(self, xc, yc, xt, mask=None):
            return None

    with pytest.raises(TypeError, match=r"a subclass of `npax\.models\.AbstractNeuralProcess`"):
        train(1, model=Other())


def test_of_many_different_fits_few_are_kept(monkeypatch):
    module = importlib.import_module("npax.training.program")
    monkeypatch.setattr(module, "PROGRAMS", 2)
    module._program.clear_cache()
    sizes = []
    for steps in (1, 2, 3, 5):
        train(steps, chunk=1)
        sizes.append(module._program._cache_size())
    assert sizes == [1, 2, 0, 1]


def test_broken_tasks_are_skipped_and_counted():
    with pytest.warns(RuntimeWarning, match=r"\d+ of the 24 steps were skipped.*Look for NaN"):
        result = train(tasks=Sines(broken=0.05))
    assert 0 < np.sum(~np.isfinite(result.losses)) == result.skipped < 24
    assert finite(result.model)
    assert fingerprint(result.model) != fingerprint(tiny(jr.split(jr.key(3))[0]))


def test_only_broken_tasks_leave_the_model_as_it_was():
    with pytest.warns(RuntimeWarning, match="All of the 24 steps were skipped"):
        result = train(tasks=Sines(broken=1.0))
    assert result.skipped == 24
    assert fingerprint(result.model) == fingerprint(tiny(jr.split(jr.key(3))[0]))


def test_seeds_start_and_end_apart():
    result = train(4, seeds=3)
    assert result.losses.shape == (4, 3)
    assert len({fingerprint(model) for model in result.models}) == 3
    x = jnp.zeros((4, 1))
    assert eqx.filter_jit(lambda model: model(x, x, x).mean)(result.models[0]).shape == (4, 1)


def test_evaluations_come_when_asked_and_at_the_end(capsys):
    result = train(evaluate=lambda model: "score", evaluate_every=10)
    assert result.evaluations == [(10, "score"), (20, "score"), (24, "score")]
    assert capsys.readouterr().out == ""


def test_a_last_evaluation_that_fails_does_not_lose_the_model():
    def evaluate(model):
        raise OSError("no space left")

    with pytest.warns(RuntimeWarning, match="`evaluate` failed at the end of the training: OSError: no space left"):
        result = train(4, evaluate=evaluate)
    assert result.steps == 4 and result.evaluations == []
    with pytest.raises(OSError, match="no space left"):  # in the middle there is time to mend it
        train(4, evaluate=evaluate, evaluate_every=2)


def test_evaluations_need_not_come_with_the_ends_of_chunks():
    result = train(evaluate=lambda model: "score", evaluate_every=10, chunk=4)
    assert [step for step, _ in result.evaluations] == [10, 20, 24]
    assert np.allclose(result.losses, train(chunk=4).losses, rtol=1e-5)


def test_a_callback_hears_of_every_chunk_and_may_end_the_training(tmp_path):
    heard = []
    result = train(12, chunk=5, callback=lambda step, losses: heard.append((step, losses)))
    assert [step for step, _ in heard] == [5, 10, 12]
    assert np.array_equal(np.concatenate([losses for _, losses in heard]), result.losses)

    def enough(step, losses):
        if step == 10:
            raise StopIteration

    asked = []
    ended = train(12, chunk=5, callback=enough, evaluate=asked.append, checkpoint=tmp_path)
    assert ended.steps == 10 and not asked and fingerprint(ended.model) != fingerprint(result.model)
    assert np.array_equal(ended.losses, result.losses[:10])
    assert fingerprint(train(12, chunk=5, checkpoint=tmp_path).model) == fingerprint(result.model), "it can go on"


def test_an_evaluation_may_end_the_training(capsys):
    def evaluate(model):
        raise StopIteration

    ended = train(12, chunk=5, evaluate=evaluate, evaluate_every=5)
    assert ended.steps == 5 and ended.evaluations == []
    assert train(4, evaluate=evaluate).steps == 4, "no failure at the end"


def test_averages_of_weights_are_in_the_optimisers_state():
    result = train(6, optimizer=optax.contrib.schedule_free_sgd(0.1))
    params = eqx.filter(result.model, eqx.is_inexact_array)
    average = optax.contrib.schedule_free_eval_params(result.opt_state, params)
    assert fingerprint(average) != fingerprint(params) and finite(average)


@pytest.mark.parametrize("wrong", [None, (0.5, {}), True])
def test_a_loss_is_one_number_and_nothing_beside(wrong):
    with pytest.raises(TypeError, match="must return one real number and nothing beside"):
        train(1, objective=lambda model, task, key: wrong)
    with pytest.raises(TypeError, match="nothing beside; got an array of bool, which has no gradient"):
        train(1, objective=lambda model, task, key: npax.objectives.nll(model, task) > 0)


def test_updates_that_are_not_finite_are_skipped(tmp_path):
    """Of a schedule that has no number for a step, say."""
    rates = optax.sgd(lambda step: jnp.where(step == 1, jnp.nan, 0.1))
    with pytest.warns(RuntimeWarning, match="3 of the 4 steps were skipped"):
        result = train(4, optimizer=rates)  # the count of the schedule stands still, too
    assert finite(result.model) and np.isfinite(result.losses).all() and result.skipped == 3


def test_weights_may_stay_as_they_are():
    """By the recipe of `fit`'s docstring."""

    def fixed(params):
        free = jax.tree.map(lambda _: False, params)
        return eqx.tree_at(lambda p: p.path, free, jax.tree.map(lambda _: True, free.path))

    start = tiny(jr.key(0))
    optimizer = optax.chain(optax.sgd(0.1), optax.masked(optax.set_to_zero(), fixed))
    trained = train(2, model=start, optimizer=optimizer).model
    assert fingerprint(trained.path) == fingerprint(start.path)
    assert fingerprint(trained.decoder) != fingerprint(start.decoder)


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.chain(optax.clip(1.0), optax.contrib.sam(optax.sgd(0.1), optax.sgd(0.05))),
        optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau()),
    ],
    ids=["reads-no-loss", "reads-the-loss"],
)
def test_optimisers_get_the_loss_if_they_read_it(optimizer):
    assert np.isfinite(train(2, optimizer=optimizer).losses).all()


class WithTable(npax.models.AbstractNeuralProcess):
    """A model with a fixed array of NumPy's."""

    inner: npax.CNP
    table: np.ndarray
    likelihood: npax.likelihoods.AbstractLikelihood
    dx: int = eqx.field(static=True, default=1)

    def condition(self, xc, yc, mask=None):
        return self.inner.condition(xc * self.table.astype(xc.dtype), yc, mask)

    def predict(self, state, xt):
        return self.inner.predict(state, xt * self.table.astype(xt.dtype))


def test_models_with_arrays_of_numpy_resume(tmp_path):
    inner = tiny(jr.key(0))
    model = WithTable(inner, np.full(1, 2), inner.likelihood)
    options = {"model": model, "objective": npax.objectives.nll}
    train(2, **options, checkpoint=tmp_path)
    resumed = train(4, **options, checkpoint=tmp_path)
    assert np.allclose(resumed.losses, train(4, **options).losses[2:], rtol=1e-5)


def test_a_loss_may_be_a_plain_number():
    assert (train(2, objective=lambda model, task, key: 0.5).losses == 0.5).all()


class Plain:
    """A sampler that is no PyTree."""

    def __init__(self):
        self.value = 1.0

    def sample(self, key):
        x = jnp.ones((4, 1))
        return npax.Task.of(x, self.value * x, x, self.value * x)


def test_plain_samplers_are_seen_as_they_are_at_each_fit():
    """Their program knows them by identity; this it knows too."""
    tasks = Plain()
    first, again = _contents(tasks), _contents(tasks)
    tasks.value = 100.0
    assert first == again != _contents(tasks) and _contents(Sines()) == ""


class WithNorm(npax.models.AbstractConditionalNeuralProcess):
    """A model of Equinox's layers: the mean of the context, whatever the target."""

    first: eqx.nn.Linear
    norm: eqx.nn.LayerNorm
    last: eqx.nn.Linear
    likelihood: npax.likelihoods.AbstractLikelihood
    dx: int = 1

    def __init__(self, key):
        self.first, self.last = eqx.nn.Linear(2, 32, key=key), eqx.nn.Linear(32, 2, key=key)
        self.norm, self.likelihood = eqx.nn.LayerNorm(32), npax.likelihoods.HeteroscedasticGaussian(1)

    def condition(self, xc, yc, mask=None):
        h = jax.vmap(self.first)(jnp.concatenate([xc, yc], axis=1))
        return self.last(self.norm(jnp.mean(h, axis=0, where=mask[:, None])))

    def decode(self, state, xt):
        return jnp.broadcast_to(state, (len(xt), 2))


@pytest.mark.parametrize("make", [npax.training.muon, npax.training.adamw])
def test_models_of_equinox_layers_are_trained_and_scales_of_their_norms_do_not_decay(make):
    result = npax.fit(WithNorm, Sines(), steps=2, key=jr.key(0), optimizer=make(2), progress=False)
    assert finite(result.model) and result.skipped == 0
    norm = {"norm": eqx.nn.LayerNorm(32)}
    params = eqx.filter(norm, eqx.is_array)
    decaying = npax.training.adamw(10, 1.0, 10.0)
    state, nothing = decaying.init(params), jax.tree.map(jnp.zeros_like, params)
    with jax.numpy_dtype_promotion("standard"):  # for optax
        updates, _ = decaying.update(nothing, state, params)
    assert not any(np.any(a) for a in jax.tree.leaves(updates))


def test_progress_shows_the_loss(capsys):
    train(progress=True)
    out, shown = capsys.readouterr()
    assert "Training" in shown and "step 24 of 24, loss" in shown and not out


def test_a_curriculum_keeps_its_proportions_and_starts():
    stages = [(3.0, 0.0), (1.0, 0.0), (4.0, 0.5)]
    curriculum = Curriculum(tuple(Stage(Sines(), 4, weight, start) for weight, start in stages))
    plan = curriculum.plan(800)
    early, late = (np.bincount(part, minlength=3) / 400 for part in (plan[:400], plan[400:]))
    assert np.allclose(early, [0.75, 0.25, 0.0], atol=0.01)
    assert np.allclose(late, [0.375, 0.125, 0.5], atol=0.01)


def test_a_curriculum_has_a_beginning():
    for stages in ((), (Stage(Sines(), 4, start=0.5),)):
        with pytest.raises(ValueError, match="One of `stages` must have `start` 0"):
            Curriculum(stages)
    with pytest.raises(ValueError, match="below 1, the end of the training"):
        Stage(Sines(), 4, start=1.0)
    for weight in (0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="`weight` must be finite and above 0"):
            Stage(Sines(), 4, weight)
    with pytest.raises(ValueError, match="`batch_size` must be a whole number, at least 1; got 0"):
        Stage(Sines(), 0)


def test_a_curriculum_is_of_stages_and_a_stage_of_samplers():
    make, stage = inspect.unwrap(Curriculum.__check_init__), Stage(Sines(), 4)
    for stages in (stage, (Sines(),), "stages"):
        with pytest.raises(TypeError, match="`stages` must be a tuple of `Stage`s"):
            make(SimpleNamespace(stages=stages))
    for tasks in (3, Sines):
        with pytest.raises(TypeError, match="`tasks` must be a sampler"):
            inspect.unwrap(Stage.__check_init__)(SimpleNamespace(tasks=tasks))
    with pytest.raises(ValueError, match=r"`batch_size` must be a whole number, at least 1; got 2\.5"):
        inspect.unwrap(Stage.__check_init__)(SimpleNamespace(tasks=Sines(), batch_size=2.5))


def test_a_curriculum_trains_on_its_stages():
    curriculum = Curriculum((Stage(Sines(), 4, 1.0), Stage(Sines(broken=1.0), 4, 1.0)))
    with pytest.warns(RuntimeWarning, match="12 of the 24 steps were skipped"):
        result = train(tasks=curriculum)
    stage = curriculum.plan(12)
    assert (np.isfinite(result.losses).reshape(12, 2) == (stage == 0)[:, None]).all()
    assert result.skipped == 2 * np.sum(stage == 1) == 12


@pytest.mark.parametrize("name", ["steps", "batch_size", "chunk", "seeds", "evaluate_every"])
def test_arguments_out_of_range_are_named(name):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number, at least 1; got 0"):
        train(**{"steps": 3, "evaluate": len, name: 0})
    model, given = tiny(jr.key(0)), {"steps": 3, "key": jr.key(0), "evaluate": len}
    for wrong in (3.0, True):
        with pytest.raises(ValueError, match=f"`{name}` must be a whole number, at least 1; got {wrong}"):
            inspect.unwrap(npax.fit)(model, Sines(), **{**given, name: wrong})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tasks": Sines}, "`tasks` must be a sampler, an object with a method `sample"),
        ({"tasks": lambda key: None}, "`tasks` must be a sampler"),
        ({"key": 7}, r"`key` must be a key, such as `jax\.random\.key\(7\)`"),
        ({"key": None}, r"`key` must be a key, such as `jax\.random\.key\(0\)`"),
        ({"evaluate": 3}, "`evaluate` must be a function, got 3"),
        ({"objective": "nll"}, "`objective` must be a function, got 'nll'"),
    ],
)
def test_arguments_of_other_types_are_named(wrong, words):
    with pytest.raises(TypeError, match=words):
        inspect.unwrap(npax.fit)(tiny(jr.key(0)), **{"tasks": Sines(), "steps": 3, "key": jr.key(0), **wrong})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"key": jr.split(jr.key(0), 2)}, r"`key` must be one key, .*got an array key<fry>\[2\]"),
        ({"key": np.zeros(2)}, r"`key` must be one key, .*got an array float64\[2\]"),
        ({"resume": "no"}, "`resume` must be True or False, got 'no'"),
        ({"checkpoint": 3}, "`checkpoint` must be the path of a folder, got 3"),
        ({"save_every": "1"}, "`save_every` must be a number of seconds, at least 0; got '1'"),
        ({"save_every": -1}, "`save_every` must be a number of seconds, at least 0; got -1"),
        ({"model": lambda key: 3}, "`model` must be a function of a key that makes a model; it returned 3"),
        ({"model": lambda key: (tiny(key), 1)}, "`model` must be a function of a key that makes a model; it returned"),
    ],
)
def test_arguments_that_cannot_be_are_named(wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        inspect.unwrap(npax.fit)(**{"model": tiny, "tasks": Sines(), "steps": 3, "key": jr.key(0), **wrong})


def test_names_are_no_devices():
    with pytest.raises(TypeError, match="`devices` must be a list of JAX's devices"):
        inspect.unwrap(devices.global_mesh)("cpu")
    with pytest.raises(TypeError, match=r"`devices` must be a list of JAX's devices: write \["):
        inspect.unwrap(devices.global_mesh)(jax.devices()[0])


@pytest.mark.parametrize("shape", ["[1]", "[7]"])
def test_an_objective_of_several_numbers_is_refused(shape):
    def objective(model, task, key):
        return jnp.broadcast_to(npax.objectives.nll(model, task, key), json.loads(shape))

    with pytest.raises(ValueError, match=re.escape(f"one number for a task, got an array of the shape {shape}")):
        train(1, objective=objective)


class Cut(npax.tasks.AbstractTasks):
    """Tasks of which one array is another."""

    what: str = eqx.field(static=True)
    cut: Callable = eqx.field(static=True)

    def sample(self, key):
        task = Sines().sample(key)
        return eqx.tree_at(lambda task: getattr(task, self.what), task, self.cut(getattr(task, self.what)))


@pytest.mark.parametrize(
    ("what", "cut", "words"),
    [
        ("yt", lambda a: a[:1], r"`xt`, `yt` and `mask_t` of a task must have the shapes .*got \[\d+, 1\], \[1, 1\]"),
        ("mask_t", lambda a: a[:1], r"must have the shapes"),
        ("xc", lambda a: a[:, 0], r"`xc`, `yc` and `mask_c` of a task must have the shapes \[n, dx\], \[n, dy\]"),
        ("mask_c", lambda a: a.astype(jnp.uint8), "`mask_c` must be of True and False, got uint8"),
    ],
)
def test_tasks_whose_arrays_do_not_belong_together_are_refused(what, cut, words):
    with pytest.raises((TypeError, ValueError), match=words):
        train(1, tasks=Cut(what, cut))


def test_tasks_without_masks_are_refused():
    class Unmasked(npax.tasks.AbstractTasks):
        def sample(self, key):
            return eqx.tree_at(lambda task: task.mask_t, Sines().sample(key), None)

    with pytest.raises(ValueError, match="no `mask_t`: give an array of `True`"):
        npax.fit(tiny(jr.key(0)), Unmasked(), steps=1, key=jr.key(0), progress=False)


def test_numbers_of_numpy_serve_and_change_no_run(tmp_path):
    run = partial(inspect.unwrap(npax.fit), tiny, Sines(), key=jr.key(3), checkpoint=tmp_path, progress=False)
    assert run(steps=np.int64(4), batch_size=np.int64(2)).steps == 4
    assert run(steps=4, batch_size=2).losses.size == 0


def test_two_trainings_in_one_folder_are_kept_apart(tmp_path):
    words = r"Another training is running in '.*': use another `checkpoint`"
    with held(tmp_path), pytest.raises(ValueError, match=words):
        train(4, checkpoint=tmp_path)
    assert not list(tmp_path.iterdir()) and train(4, checkpoint=tmp_path).steps == 4


def test_a_folder_that_cannot_be_written_to_is_told_before_training(tmp_path, monkeypatch):
    def refused(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(PermissionError):
        train(4, checkpoint=tmp_path, evaluate=lambda model: pytest.fail("trained"), evaluate_every=2)


def test_what_was_trained_is_not_lost_where_it_cannot_be_saved(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importlib.import_module("npax.training.resume"), "write_checkpoint", full)
    with pytest.warns(RuntimeWarning, match="checkpoint of step 4 could not be written to .*No space left"):
        assert train(4, checkpoint=tmp_path).steps == 4


def test_a_checkpoint_that_cannot_be_written_on_the_way_ends_no_training(tmp_path, monkeypatch):
    module, failed = importlib.import_module("npax.training.resume"), []
    write = module.write_checkpoint

    def full_once(*arguments):
        if not failed:
            failed.append(arguments)
            raise OSError(28, "No space left on device")
        return write(*arguments)

    monkeypatch.setattr(module, "write_checkpoint", full_once)
    with pytest.warns(RuntimeWarning, match="checkpoint of step 2 could not be written"):
        assert train(6, checkpoint=tmp_path, save_every=0.0).steps == 6
    assert [path.stem for path in checkpoints(tmp_path)][-1] == "step-000000006"


@pytest.mark.parametrize("weights", ["float16", "bfloat16"])
def test_weights_of_float16_are_refused(weights):
    short = jax.tree.map(lambda a: a.astype(weights) if eqx.is_inexact_array(a) else a, tiny(jr.key(0)))
    if weights == "bfloat16":
        return check_precision(short)
    with pytest.raises(ValueError, match=r"`model` has weights of float16, .* train in float32 or bfloat16"):
        train(2, model=short)


def test_optimizers_may_hold_random_keys(tmp_path):
    noisy = optax.chain(optax.add_noise(0.01, 0.55, 0), optax.sgd(1e-3))
    whole = train(6, optimizer=noisy)
    train(4, optimizer=noisy, checkpoint=tmp_path)
    assert fingerprint(train(6, optimizer=noisy, checkpoint=tmp_path).model) == fingerprint(whole.model)


def test_a_sampler_that_returns_a_tuple_is_refused_unless_an_objective_reads_it():
    class Pairs(npax.tasks.AbstractTasks):
        def sample(self, key):
            task = Sines().sample(key)
            return task.xc, task.yc

    def misfit(model, drawn, key):
        x, y = drawn
        return jnp.mean(jnp.square(model(x, y, x).mean - y))

    run = partial(npax.fit, tiny(jr.key(0)), Pairs(), steps=1, key=jr.key(0), batch_size=2, progress=False)
    with pytest.raises(TypeError, match=r"must return an `npax\.Task`, got a tuple: make one of arrays"):
        run()
    assert run(objective=misfit).steps == 1


class Drawn(AbstractTasks):
    """Locations and values by a function of a key."""

    draw: Callable = eqx.field(static=True)

    def sample(self, key):
        x = self.draw(key)
        return npax.Task.of(x, x, x, x)


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: jnp.ones((int(jr.randint(key, (), 2, 5)), 1)),
        lambda key: jr.normal(key, (5, 1))[jr.bernoulli(key, shape=(5,))],
        lambda key: np.random.default_rng(np.asarray(jr.key_data(key))).normal(size=(5, 1)),
    ],
)
def test_tasks_of_shapes_by_chance_are_refused(draw):
    with pytest.raises(TypeError, match=r"of a fixed shape .* and random by its key alone"):
        check_drawn(Curriculum((Stage(Drawn(draw), 2),)))


def test_tasks_that_are_always_the_same_are_told():
    with pytest.warns(UserWarning, match="does not look at its key, so that every step trains on one and the same"):
        check_drawn(Curriculum((Stage(Drawn(lambda key: np.ones((5, 1))), 2),)))
    check_drawn(Curriculum((Stage(Drawn(lambda key: jr.normal(key, (5, 1))), 2),)))
    with pytest.warns(UserWarning, match="constants that differ from call to call, as NumPy's random numbers do"):
        noisy = Drawn(lambda key: jr.normal(key, (5, 1)) + np.random.normal(size=(5, 1)).astype(np.float32))
        check_drawn(Curriculum((Stage(noisy, 2),)))


def test_a_training_has_devices_of_its_own():
    """Whatever mesh a user works with."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        result = train(2)
    assert fingerprint(result.model) == fingerprint(train(2).model)


def test_dates_are_no_numbers():
    x, days = np.zeros((3, 1)), np.zeros((3, 1), "datetime64[D]")
    for given in ((days, x, x, x), (x, x, x, days)):
        with pytest.raises(TypeError, match="must be numbers, got dates"):
            inspect.unwrap(npax.Task.of.__func__)(npax.Task, *given)


def test_tasks_of_tables_with_dates_masks_and_complex_numbers_are_refused():
    of, x = inspect.unwrap(npax.Task.of.__func__), np.zeros((3, 1))
    for error, words, wrong in (
        (TypeError, "must be numbers, got dates", pd.DataFrame({"t": pd.date_range("2020", periods=3)})),
        (TypeError, "must be real numbers", x + 1j),
        (ValueError, "`yc` hides 1 values under a mask", np.ma.array(x, mask=[[0], [1], [0]])),
    ):
        with pytest.raises(error, match=words):
            of(npax.Task, x, wrong, x, x)
    assert of(npax.Task, x, np.ma.array(x), x, x).yc.shape == (3, 1)


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize(
    ("dx", "dy", "words"), [(2, 1, "1 columns of `x` and .* 2"), (1, 3, "1 columns of `y` and .* 3")]
)
def test_a_model_of_other_columns_than_the_tasks_is_refused(dx, dy, words, seeds):
    def model(key):
        return npax.CNP(dx, dy, encoder=(16,), size=16, decoder=(16,), key=key)

    with pytest.raises(ValueError, match=f"The tasks have {words}"):
        npax.fit(model, Sines(), steps=1, key=jr.key(0), seeds=seeds, batch_size=2, progress=False)


def test_seeds_need_a_function_of_a_key():
    with pytest.raises(ValueError, match="`seeds`=2 needs `model` to be a function"):
        npax.fit(tiny(jr.key(0)), Sines(), steps=1, key=jr.key(0), seeds=2)


@pytest.mark.parametrize(
    "model",
    [
        lambda key: npax.BNP(1, 1, encoder=(16,), size=16, decoder=(16,), key=key),
        lambda key: npax.TETNP(1, 1, blocks=1, size=16, heads=1, head_size=8, hidden=16, key=key),
    ],
    ids=["bootstrap", "translation-equivariant"],
)
def test_a_step_goes_along_the_gradient_of_the_mean_loss(model):
    """Models that map over copies of themselves, or over pairs, within each task."""
    start = untrained(model)
    goes_along_the_gradient(start, npax.objectives.suited(start))


def test_objectives_may_take_gradients_themselves():
    """Of each task its own: of the weights, as in meta-learning, and of places, as for slopes that are penalised."""

    def objective(model, task, key):
        step = eqx.filter_grad(npax.objectives.nll)(model, task)
        moved = eqx.apply_updates(model, jax.tree.map(lambda a: -0.1 * a, step))
        slope = jax.grad(lambda x: jnp.sum(model(task.xc, task.yc, x, task.mask_c).mean))(task.xt)
        return npax.objectives.nll(moved, task) + jnp.mean(jnp.square(slope))

    goes_along_the_gradient(tiny(jr.key(0)), objective)


def goes_along_the_gradient(start, objective):
    """The key of the step is `fit`'s."""
    options = {"objective": objective, "optimizer": optax.sgd(1.0), "chunk": 1, "progress": False}
    result = npax.fit(start, Sines(), steps=1, key=jr.key(3), batch_size=3, **options)

    @eqx.filter_jit
    def gradient(model, key, i):
        """Of the loss of the `i`-th task."""
        step_key = jr.fold_in(jr.split(key)[1], 0)
        task = Sines().sample(jr.split(step_key, 3)[i])
        return eqx.filter_grad(objective)(model, task, jr.split(jr.fold_in(step_key, 3), 3)[i])

    each = [jax.device_get(gradient(start, jr.key(3), np.array(i))) for i in range(3)]
    mean = jax.tree.map(lambda *parts: sum(parts) / np.float32(3), *each)
    before, after = (jax.device_get(eqx.filter(m, eqx.is_inexact_array)) for m in (start, result.model))
    moved = jax.tree.map(lambda a, b: a - b, before, after)
    assert eqx.tree_equal(moved, mean, typematch=True, rtol=1e-4, atol=1e-5)


def test_no_task_shares_its_key_with_the_objectives():
    """JAX's splits are foldings: `split(key, n)[1]` is `fold_in(key, 1)`."""
    seen = {"task": [], "objective": []}

    def note(kind, key):
        jax.debug.callback(lambda data: seen[kind].append(tuple(np.asarray(data))), jr.key_data(key))

    class Noted(AbstractTasks):
        def sample(self, key):
            note("task", key)
            for part in jr.split(key, 3):
                note("task", part)
            return Sines().sample(key)

    def objective(model, task, key):
        note("objective", key)
        return npax.objectives.nll(model, task, key)

    train(1, tasks=Noted(), objective=objective, batch_size=3)
    jax.effects_barrier()
    assert len(set(seen["task"])) == 12 and len(set(seen["objective"])) == 3
    assert not set(seen["task"]) & set(seen["objective"])


def test_a_run_that_began_with_a_function_goes_on_with_it(tmp_path):
    """Of other weights, as a preset's are with and without those that are shipped: the checkpoint's go on."""
    began = train(4, model=tiny, checkpoint=tmp_path)
    ended = train(8, model=lambda key: tiny(jr.key(9)), checkpoint=tmp_path)
    assert ended.steps == 8 and len(ended.losses) == 4 and fingerprint(ended.model) != fingerprint(began.model)


@pytest.mark.parametrize(
    ("name", "architecture"), [("gp-universal", gp_universal), ("field-universal", field_universal)]
)
def test_presets_begin_with_a_function_so_that_they_go_on_either_way(name, architecture):
    new, shipped = (presets._first(name, architecture, resume)(jr.key(0)) for resume in (False, True))
    assert eqx.tree_equal(shipped, npax.load(name)) and not eqx.tree_equal(new, shipped)


def test_a_gradient_by_groups_of_tasks_is_that_of_the_batch(monkeypatch):
    """Five tasks in groups of two: the last group has one in vain."""
    step = importlib.import_module("npax.training.step")
    stage = Stage(Sines(), 5)

    def trained():
        objective = lambda *arguments: npax.objectives.nll(*arguments)  # noqa: E731  (another program each time)
        return train(3, batch_size=5, seeds=2, objective=objective, optimizer=optax.sgd(0.1))

    assert step.groups(stage, devices.global_mesh()) == (5, 1)
    whole = trained()
    monkeypatch.setattr(step, "cores_each", lambda mesh: 1)
    monkeypatch.setattr(step, "POINTS", 2 * (6 + 5))
    assert step.groups(stage, devices.global_mesh()) == (2, 3)
    grouped = trained()
    assert np.allclose(grouped.losses, whole.losses, rtol=1e-5)
    assert eqx.tree_equal(grouped.model, whole.model, rtol=1e-4, atol=1e-5)


def test_tasks_with_posteriors_are_trained_on():
    """Those of the shipped model: context and targets lie a level deeper."""
    tasks = AsPrior(GPPosteriorTask(GPTask(RBFPrior(), nc=4, low=2, grid=3)))
    model = untrained(lambda key: npax.CNP(3, 1, encoder=(8,), size=8, decoder=(8,), likelihood=TOLD_APART, key=key))
    options = {"objective": npax.objectives.function_and_noise_nll, "progress": False}
    result = npax.fit(model, Curriculum((Stage(tasks, 4),)), steps=2, key=jr.key(0), **options)
    assert np.isfinite(result.losses).all()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    train(6, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="holds a run with another `key`"):
        train(6, checkpoint=tmp_path, key=jr.key(9))
    with pytest.raises(ValueError, match="holds a run of 6 steps, more than `steps`=4"):
        train(4, checkpoint=tmp_path)
    train(4, checkpoint=tmp_path, key=jr.key(9), resume=False)
    assert train(4, checkpoint=tmp_path, key=jr.key(9)).steps == 4
    assert [path.stem for path in checkpoints(tmp_path)] == ["step-000000004"]


@pytest.mark.parametrize(
    "other",
    [
        {"tasks": Sines(broken=0.5)},
        {"objective": lambda model, task, key: npax.objectives.nll(model, task, key)},
        {"batch_size": 2},
        {"optimizer": npax.training.adamw(6)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_checkpoint_of_other_tasks_or_by_other_means_is_refused(other, tmp_path):
    train(6, checkpoint=tmp_path)
    assert train(6, checkpoint=tmp_path).steps == 6
    with pytest.raises(ValueError, match=r"holds a run of another model|belongs to another model, optimiser"):
        train(6, checkpoint=tmp_path, **other)


@pytest.mark.parametrize("wrapped", [lambda objective: objective, eqx.filter_jit])
def test_an_objective_that_was_edited_is_another(wrapped, tmp_path):
    """Of one name in one place, as after an edit of the file, or of lambdas in a notebook."""

    def edited(times):
        space = {"nll": npax.objectives.nll, "__name__": "study"}
        exec(f"def objective(model, task, key): return {times} * nll(model, task)", space)
        return wrapped(space["objective"])

    train(2, objective=edited(1), checkpoint=tmp_path)
    assert train(4, objective=edited(1), checkpoint=tmp_path).steps == 4
    with pytest.raises(ValueError, match="with another objective"):
        train(6, objective=edited(-100), checkpoint=tmp_path)


@pytest.mark.parametrize("where", ["objective", "tasks"])
def test_a_value_that_is_read_of_a_module_is_read_anew(where, tmp_path):
    """In another `fit` of the same function, as in a sweep in a notebook; and makes a checkpoint one of another run."""
    space = {"nll": npax.objectives.nll, "Sines": Sines, "eqx": eqx, "SHIFT": 0.0, "__name__": "study"}
    exec(
        "def objective(model, task, key): return nll(model, task) + SHIFT\n"
        "class Shifted(Sines):\n"
        "    def sample(self, key):\n"
        "        task = super(Shifted, self).sample(key)\n"
        "        return eqx.tree_at(lambda t: t.yt, task, replace_fn=lambda y: y + SHIFT)\n",
        space,
    )
    own = {"objective": space["objective"]} if where == "objective" else {"tasks": space["Shifted"]()}
    first = train(2, **own, checkpoint=tmp_path / "a").losses
    again = train(2, **own, checkpoint=tmp_path / "b").losses
    space["SHIFT"] = 30.0
    other = train(2, **own, checkpoint=tmp_path / "c").losses
    assert np.array_equal(first, again) and other[0] > first[0] + 20
    with pytest.raises(ValueError, match="with another objective" if where == "objective" else "on other tasks"):
        train(4, **own, checkpoint=tmp_path / "a")


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_of_large_arrays_of_a_module_a_part_tells(kind):
    """Without a copy of all on the host."""
    data = np.random.default_rng(0).normal(size=(300, 1000)).astype(np.float32)
    space = {"__name__": "study", "DATA": kind(data)}
    exec("def objective(model, task, key): return DATA.mean()", space)
    first = _code(space["objective"])
    space["DATA"] = kind(data.copy())
    assert _code(space["objective"]) == first
    for other in (data[:, ::-1], data.reshape(1000, 300), data + 1):
        space["DATA"] = kind(other)
        assert _code(space["objective"]) != first


def test_a_run_whose_other_weights_stay_as_they_are_is_another(tmp_path):
    def optimizer(part):
        def fixed(params):
            free = jax.tree.map(lambda _: False, params)
            return eqx.tree_at(part, free, jax.tree.map(lambda _: True, part(free)))

        return optax.chain(optax.sgd(0.1), optax.masked(optax.set_to_zero(), fixed))

    train(2, optimizer=optimizer(lambda p: p.path), checkpoint=tmp_path)
    assert train(4, optimizer=optimizer(lambda p: p.path), checkpoint=tmp_path).steps == 4
    with pytest.raises(ValueError, match="optimiser"):
        train(6, optimizer=optimizer(lambda p: p.decoder), checkpoint=tmp_path)


def test_tasks_that_were_edited_are_others(tmp_path):
    """By the methods of a sampler of one's own, and of what it holds."""

    def edited(times):
        space = {"Sines": Sines, "eqx": eqx, "Path": Path, "__name__": "study"}
        exec(
            "class Scale(eqx.Module):\n"
            f"    def __call__(self, y): return {times} * y\n"
            "class Edited(Sines):\n"
            "    scale: Scale\n"
            "    where: object = eqx.field(static=True)\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.scale, self.where = Scale(), Path('data')\n"
            "    def sample(self, key):\n"
            "        return eqx.tree_at(lambda t: t.yt, super().sample(key), replace_fn=self.scale)\n",
            space,
        )
        return space["Edited"]()

    tasks = edited(1)
    train(2, tasks=tasks, checkpoint=tmp_path)
    assert train(4, tasks=tasks, checkpoint=tmp_path).steps == 4
    with pytest.raises(ValueError, match="on other tasks"):
        train(6, tasks=edited(30), checkpoint=tmp_path)


def test_an_objective_is_the_same_in_every_process():
    """Whatever the order of its sets."""
    program = "from npax.training.resume import _code; print(_code(lambda m: m in {'a', 'b', 'c', ('d', 'e')}))"
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1

    def twice(model, task, key, times=2):
        return times * npax.objectives.nll(model, task)

    assert _code(partial(twice, times=3)) == _code(twice) != ""


def test_optimizers_may_call_themselves():
    def factory():
        def walk(tree):
            return [walk(part) for part in tree] if isinstance(tree, list) else tree

        return optax.GradientTransformation(lambda params: (), lambda grads, state, params=None: (walk(grads), state))

    assert any("adam" in name for name in _updates(optax.chain(factory(), optax.adam(1e-3))))
    several = optax.multi_transform({"a": optax.yogi(1e-3)}, "a")
    assert any("yogi" in name for name in _updates(several))


def test_an_optimizer_whose_state_looks_alike_is_another(tmp_path):
    train(2, optimizer=optax.adam(1e-3), checkpoint=tmp_path)
    assert train(4, optimizer=optax.adam(1e-4), checkpoint=tmp_path).steps == 4, "rates may change"
    with pytest.raises(ValueError, match="optimiser"):
        train(6, optimizer=optax.yogi(1e-3), checkpoint=tmp_path)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path):
    def train(model, steps=4):
        return npax.fit(model, Sines(), steps=steps, key=jr.key(0), batch_size=2, checkpoint=tmp_path, progress=False)

    start, other = (npax.CNP(1, 1, encoder=(4,), size=4, decoder=(4,), key=jr.key(seed)) for seed in (1, 2))
    first = train(start).model
    assert eqx.tree_equal(train(start).model, first)
    with pytest.raises(ValueError, match="of a model that started with other weights"):
        train(other)
    assert train(first, 6).steps == 6, "its own weights go on"
    assert train(start, 8).steps == 8, "as before"


def test_when_to_evaluate_needs_what_to_evaluate():
    with pytest.raises(ValueError, match="`evaluate_every`=2 needs `evaluate`"):
        train(2, evaluate_every=2)


@pytest.mark.parametrize(
    "shapes", [((5,), (5,), (3,), (3,)), ((5, 1), (4, 1), (3, 1), (3, 1)), ((5, 1), (5, 1), (3, 1), (2, 1))]
)
def test_tasks_of_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ValueError, match=r"must have the shape \[n, dx\], a row for each point"):
        npax.Task.of(*map(np.zeros, shapes))


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        (((5, 1), (5, 2), (3, 1), (3, 1)), "y"),
        (((5, 2), (5, 1), (3, 1), (3, 1)), "x"),
        (((5, 3, 1), (5, 3, 1), (2, 4, 1), (2, 4, 1)), "x"),
    ],
)
def test_context_and_targets_of_a_task_have_the_same_columns(shapes, name):
    with pytest.raises(ValueError, match=f"`{name}c` and `{name}t` must have the same columns"):
        npax.Task.of(*map(np.zeros, shapes))


def test_schedules_rise_and_fall_as_documented():
    """Over a twentieth of the steps, 500 or 300 at most; and from the peak to zero."""
    for steps, rise in ((100, 5), (1000, 50), (100_000, 500)):
        at = np.array([0, rise / 2, rise, (rise + steps) / 2, steps])
        assert np.allclose(warmup_cosine(steps, 2.0)(at), [2 / rise, 1 + 1 / rise, 2, 1, 0], atol=1e-5)
    for steps, rise in ((1000, 50), (100_000, 300)):
        at = np.array([0, rise, 0.5 * steps, 0.6 * steps, 0.8 * steps, steps])
        assert np.allclose(warmup_stable_decay(steps, 2.0, 0.4)(at), [2 / rise, 2, 2, 2, 1, 0], atol=1e-5)


@pytest.mark.parametrize("make", [npax.training.muon, npax.training.adamw, npax.training.yogi])
def test_a_gradient_counts_as_one_of_norm_3_at_most(make):
    params = {"bias": jnp.arange(4.0)}
    optimizer = make(100, 0.1)

    @jax.jit
    def second(norm):
        """Of two, the first of which is small: the first alone is that of any norm."""
        _, state = optimizer.update({"bias": jnp.full(4, 0.1)}, optimizer.init(params), params)
        return optimizer.update({"bias": norm * jnp.array([0.5, -0.5, 0.5, -0.5])}, state, params)[0]["bias"]

    with jax.numpy_dtype_promotion("standard"):  # for optax
        below, three, above = (np.asarray(second(norm)) for norm in (2.0, 3.0, 300.0))
    assert np.allclose(above, three, rtol=1e-4) and not np.allclose(below, three, rtol=1e-2)


def test_what_is_no_matrix_has_the_rate_of_adam():
    """Whichever that of matrices is."""
    params = {"bias": jnp.zeros(3)}

    def update(*rates):
        optimizer = npax.training.muon(100, *rates)
        with jax.numpy_dtype_promotion("standard"):  # for optax
            return optimizer.update({"bias": jnp.array([0.5, -0.1, 0.2])}, optimizer.init(params), params)[0]["bias"]

    assert np.allclose(update(1.0, 1e-3), update(5.0, 1e-3)) and np.allclose(2 * update(1.0, 1e-3), update(1.0, 2e-3))
    assert np.all(update(1.0, 1e-3) != 0)


def _no_gradient(model):
    """Zero, whose gradient is none."""
    return sum(jnp.sqrt(0 * jnp.sum(leaf)) for leaf in jax.tree.leaves(eqx.filter(model.path, eqx.is_inexact_array)))


@pytest.mark.parametrize("lost", [_no_gradient, lambda model: jnp.nan], ids=["gradient", "loss"])
def test_steps_are_skipped_whatever_an_optimiser_makes_of_them(lost):
    """Where the loss alone, or the gradient alone, is not finite, and the update is."""

    def objective(model, task, key):
        return npax.objectives.nll(model, task) + lost(model)

    with pytest.warns(RuntimeWarning, match="All of the 3 steps were skipped"):
        result = train(3, objective=objective, optimizer=optax.chain(optax.zero_nans(), optax.sgd(0.1)))
    assert result.skipped == 3


def test_skipped_steps_of_all_seeds_are_counted():
    with pytest.warns(RuntimeWarning, match="All of the 4 steps were skipped"):
        assert train(4, tasks=Sines(broken=1.0), seeds=3).skipped == 12


def test_a_curriculum_changes_its_stages_with_the_chunks_wherever_a_run_ended_and_is_evaluated(tmp_path):
    """Rates that depend on no number of steps."""
    curriculum = Curriculum((Stage(Sines(), 4), Stage(Sines(), 2)))
    options = {"tasks": curriculum, "optimizer": optax.sgd(0.1), "chunk": 4}
    assert len(set(curriculum.plan(4)[1:3])) == 2
    whole = train(16, **options).losses
    train(6, **options, checkpoint=tmp_path)
    assert np.allclose(train(16, **options, checkpoint=tmp_path).losses, whole[6:], rtol=1e-5)
    assert np.allclose(train(16, **options, evaluate=lambda model: 0, evaluate_every=1).losses, whole, rtol=1e-5)
