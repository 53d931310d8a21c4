"""What the arguments of `fit` may be."""

import os

import equinox as eqx
import jax
import jax.random as jr
import numpy as np

from ..models import AbstractNeuralProcess
from ..task import Task
from ..tasks import Curriculum


def check_run(model, tasks, counts, key, optimizer):
    """**Raises** where an argument of `fit` is none of what it takes."""
    if isinstance(tasks, type) or not (isinstance(tasks, Curriculum) or callable(getattr(tasks, "sample", None))):
        raise TypeError(
            "`tasks` must be a sampler, an object with a method `sample(key) -> npax.Task` (see `npax.tasks`), or a "
            f"`Curriculum`; got {tasks!r}."
        )
    if not isinstance(key, jax.Array | np.ndarray):
        example = key if isinstance(key, int | np.integer) else 0
        raise TypeError(f"`key` must be a key, such as `jax.random.key({example})`; got {key!r}.")
    try:
        one = jr.key_data(key).ndim == 1
    except TypeError:  # JAX knows what a key is
        one = False
    if not one:
        raise ValueError(f"`key` must be one key, such as `jax.random.key(0)`; got an array {key.dtype}{[*key.shape]}.")
    drawn = not isinstance(model, AbstractNeuralProcess)
    if counts["seeds"] > 1 and not drawn:
        raise ValueError(
            f"`seeds`={counts['seeds']} needs `model` to be a function of a key, so that each seed starts elsewhere."
        )
    other = hasattr(model, "condition") and not isinstance(model, type)  # a class makes a model of a key
    if drawn and (other or not callable(model)):
        rule = "`model` must be a model, a subclass of `npax.models.AbstractNeuralProcess`, or a function of a key that"
        raise TypeError(f"{rule} makes one; got {model!r}.")
    if not (optimizer is None or (hasattr(optimizer, "init") and hasattr(optimizer, "update"))):
        raise TypeError(
            f"`optimizer` must be an optax transformation, such as `npax.training.adamw({counts['steps']}, 1e-3)`; got "
            f"{optimizer!r}."
        )


def check_saving(checkpoint, save_every):
    """**Raises** where the folder is no path, or the seconds no number."""
    if not (checkpoint is None or isinstance(checkpoint, str | os.PathLike)):
        raise TypeError(f"`checkpoint` must be the path of a folder, got {checkpoint!r}.")
    if isinstance(save_every, bool) or not isinstance(save_every, int | float | np.number) or not save_every >= 0:
        raise ValueError(f"`save_every` must be a number of seconds, at least 0; got {save_every!r}.")


def check_functions(objective, evaluate, evaluate_every):
    """**Raises** where one of them is no function, or there is nothing to call."""
    for name, function in (("objective", objective), ("evaluate", evaluate)):
        if function is not None and not callable(function):
            raise TypeError(f"`{name}` must be a function, got {function!r}.")
    if evaluate_every is not None and evaluate is None:
        raise ValueError(f"`evaluate_every`={evaluate_every} needs `evaluate`, the function to call.")


def check_drawn(curriculum):
    """**Raises** `TypeError` where samplers draw something else than the tasks that the objectives of models read."""
    for stage in curriculum.stages:
        drawn = eqx.filter_eval_shape(stage.tasks.sample, jr.key(0))
        if not isinstance(drawn, Task):
            raise TypeError(
                f"`tasks.sample` must return an `npax.Task`, got a {type(drawn).__name__}: make one of arrays, "
                "`npax.Task.of(xc, yc, xt, yt)`, or pass the `objective` that reads what is drawn."
            )
