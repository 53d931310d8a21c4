"""What the arguments of `fit` may be."""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.extend.core import Literal

from ..arguments import one_key
from ..models import AbstractNeuralProcess
from ..task import Task
from ..tasks import Curriculum
from ..warn import warn


def check_run(model, tasks, counts, key, optimizer):
    """**Raises** where an argument of `fit` is none of what it takes."""
    if isinstance(tasks, type) or not (isinstance(tasks, Curriculum) or callable(getattr(tasks, "sample", None))):
        raise TypeError(
            "`tasks` must be a sampler, an object with a method `sample(key) -> npax.Task` (see `npax.tasks`), or a "
            f"`Curriculum`; got {tasks!r}."
        )
    one_key(key)
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


def check_precision(model):
    """**Raises** `ValueError` for weights of float16."""
    if any(leaf.dtype == np.float16 for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))):
        raise ValueError(
            "`model` has weights of float16, whose gradients soon leave its range (65,504): train in float32 or "
            "bfloat16, and cast afterwards."
        )


def check_saving(checkpoint, save_every):
    """**Raises** where the folder is no path, or the seconds no number."""
    if not (checkpoint is None or isinstance(checkpoint, str | os.PathLike)):
        raise TypeError(f"`checkpoint` must be the path of a folder, got {checkpoint!r}.")
    if isinstance(save_every, bool) or not isinstance(save_every, int | float | np.number) or not save_every >= 0:
        raise ValueError(f"`save_every` must be a number of seconds, at least 0; got {save_every!r}.")


def check_functions(objective, evaluate, evaluate_every, callback):
    """**Raises** where one of them is no function, or there is nothing to call."""
    for name, function in (("objective", objective), ("evaluate", evaluate), ("callback", callback)):
        if function is not None and not callable(function):
            raise TypeError(f"`{name}` must be a function, got {function!r}.")
    if evaluate_every is not None and evaluate is None:
        raise ValueError(f"`evaluate_every`={evaluate_every} needs `evaluate`, the function to call.")


def check_drawn(curriculum):
    """**Raises** `TypeError` where samplers draw something else than the tasks that the objectives of models read, or
    of a shape that depends on the key. **Warns** where they draw the same task for every key."""
    for stage in curriculum.stages:
        try:
            (program, drawn, _), (again, *_) = (eqx.filter_make_jaxpr(stage.tasks.sample)(jr.key(0)) for _ in range(2))
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise TypeError(
                "`tasks.sample` must be a function that JAX can compile: of a fixed shape (pad sets of different "
                "sizes, and tell them apart by masks), and random by its key alone."
            ) from error
        if not isinstance(drawn, Task):
            raise TypeError(
                f"`tasks.sample` must return an `npax.Task`, got a {type(drawn).__name__}: make one of arrays, "
                "`npax.Task.of(xc, yc, xt, yt)`, or pass the `objective` that reads what is drawn."
            )
        if not _reads(program.jaxpr, program.jaxpr.invars[-1]):
            warn(
                "`tasks.sample` does not look at its key, so that every step trains on one and the same task: draw by "
                "`jax.random`, not by NumPy.",
                UserWarning,
            )
        elif _constants(program) != _constants(again):
            warn(
                "`tasks.sample` has constants that differ from call to call, as NumPy's random numbers do: they are "
                "drawn once, and are the same in all tasks of all steps. Draw by `jax.random`, or call NumPy by "
                "`jax.pure_callback`.",
                UserWarning,
            )


def _constants(program):
    """The bytes of the arrays and numbers that a program holds."""
    held = [part.val for step in program.jaxpr.eqns for part in step.invars if isinstance(part, Literal)]
    keys = jax.dtypes.extended
    return [np.asarray(a).tobytes() for a in [*program.consts, *held] if not jnp.issubdtype(jnp.result_type(a), keys)]


def _reads(program, key):
    """Whether a program has a use for one of its arguments."""
    return key in program.outvars or any(key in step.invars for step in program.eqns)
