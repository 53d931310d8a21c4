"""One step of training: a batch of tasks, drawn on the device, and its gradient, a group of tasks at a time."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..arguments import booleans
from ..blocks import unrolled
from ..devices import AXIS, cores_each
from ..matmul import summed_over_tasks
from ..models import AbstractNeuralProcess
from ..task import Task
from ..tasks import Stage

POINTS = 4096
"""Points of the tasks whose gradient a CPU core computes at a time: what more of them leave behind for it does not fit
the cache, and a step on images or epidemics takes up to half more time."""


def step(
    model: eqx.Module,
    opt_state: optax.OptState,
    stage: Stage,
    key: PRNGKeyArray,
    objective: Callable,
    optimizer: optax.GradientTransformation,
    mesh: Mesh,
) -> tuple[eqx.Module, optax.OptState, Float[Array, ""], Bool[Array, ""]]:
    """The model and the optimiser's state after one step, its loss, and whether that, the gradient or the update is not
    finite."""
    loss, grads = _gradient_of_share(model, stage, key, objective, mesh)
    if mesh.size > 1:
        loss, grads = jax.lax.psum((loss, grads), AXIS)
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    with jax.numpy_dtype_promotion("standard"):
        updates, new_opt_state = _updated(optimizer, grads, opt_state, params, loss)
        new_params = optax.apply_updates(params, updates)
    sound = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(grads)) & _all_finite(updates)
    new_params, new_opt_state = jax.tree.map(
        lambda new, old: jnp.where(sound, new, old), (new_params, new_opt_state), (params, opt_state)
    )
    return eqx.combine(new_params, rest), new_opt_state, loss, ~sound


def _gradient_of_share(model, stage, key, objective, mesh):
    """What this device's tasks add to the mean loss of the batch, and to its gradient, a group of tasks at a time."""
    size, count = groups(stage, mesh)
    # JAX's splits are foldings: only a number that is none of the batch's gives a key that no task is drawn with.
    keys, objective_keys = (jr.split(k, stage.batch_size) for k in (key, jr.fold_in(key, stage.batch_size)))
    index = (jax.lax.axis_index(AXIS) * count + jnp.arange(count))[:, None] * size + jnp.arange(size)

    def of_task(model, task, key):
        return _number(objective(model, task, key))

    @eqx.filter_value_and_grad
    def gradient(model, index):
        """Of the mean over the batch; where tasks run out, the last is repeated in vain."""
        mine = jnp.minimum(index, stage.batch_size - 1)
        tasks = jax.vmap(stage.tasks.sample)(keys[mine])
        _check_columns(model, tasks)
        with unrolled(), summed_over_tasks():
            losses = eqx.filter_vmap(of_task, in_axes=(None, 0, 0))(model, tasks, objective_keys[mine])
            _check_losses(losses)
            return jnp.sum(jnp.where(index < stage.batch_size, losses, 0.0)) / stage.batch_size

    def add(total, index):
        return jax.tree.map(jnp.add, total, gradient(model, index)), None

    nothing = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), eqx.filter(model, eqx.is_inexact_array)))
    return gradient(model, index[0]) if count == 1 else jax.lax.scan(add, nothing, index)[0]


def _all_finite(tree):
    return functools.reduce(jnp.logical_and, [jnp.isfinite(a).all() for a in jax.tree.leaves(tree)], jnp.array(True))


def _updated(optimizer, grads, opt_state, params, loss):
    """With the loss for those that read it, such as `reduce_on_plateau`, and without for those that take no such thing,
    such as `optax.contrib.sam`, in a chain too."""
    if isinstance(optimizer, optax.GradientTransformationExtraArgs):
        try:
            return optimizer.update(grads, opt_state, params, value=loss)
        except TypeError as error:
            if "'value'" not in str(error):
                raise
    return optimizer.update(grads, opt_state, params)


def _number(loss):
    """A plain number, too, is one for each task. **Raises** `TypeError` for what is no real number."""
    plain = isinstance(loss, float | int | np.floating | np.integer) and not isinstance(loss, bool)
    if not (plain or (isinstance(loss, jax.Array | np.ndarray) and jnp.issubdtype(loss.dtype, jnp.floating))):
        got = repr(loss)
        if isinstance(loss, jax.Array | np.ndarray):
            got = f"an array of {loss.dtype}, which has no gradient"
        raise TypeError(f"`objective(model, task, key)` must return one real number and nothing beside; got {got}.")
    return jnp.asarray(loss)


def _check_losses(losses):
    """**Raises** `ValueError` where the objective is not one number for each task."""
    if jnp.ndim(losses) != 1:
        raise ValueError(
            f"`objective` must return one number for a task, got an array of the shape {[*jnp.shape(losses)[1:]]}: "
            "take its mean or its sum."
        )


def _check_columns(model, tasks):
    """**Raises** `ValueError` where tasks have other columns than the model was made for, or no masks."""
    if not (isinstance(tasks, Task) and isinstance(model, AbstractNeuralProcess)):
        return
    for name in ("mask_c", "mask_t"):
        if getattr(tasks, name) is None:
            raise ValueError(f"The tasks have no `{name}`: give an array of `True`, one for each point.")
        booleans(**{name: getattr(tasks, name)})
    for of in "ct":
        shapes = [getattr(tasks, name + of).shape[1:] for name in ("x", "y", "mask_")]
        if [len(shape) for shape in shapes] != [2, 2, 1] or len({shape[0] for shape in shapes}) > 1:
            raise ValueError(
                f"`x{of}`, `y{of}` and `mask_{of}` of a task must have the shapes [n, dx], [n, dy] and [n], a row for "
                f"each point; got {', '.join(str([*shape]) for shape in shapes)}."
            )
    for name, there, taken in (("x", tasks.xc, model.dx), ("y", tasks.yc, model.likelihood.dy)):
        if there.shape[-1] != taken:
            raise ValueError(
                f"The tasks have {there.shape[-1]} columns of `{name}` and the model takes {taken}: make a model with "
                f"`d{name}` = {there.shape[-1]} (and a likelihood of as many columns as `y`)."
            )


def groups(stage, mesh):
    """Tasks whose gradient is computed at a time, and how many times: on CPUs, what fits the caches of the cores that
    a device has."""
    share = -(-stage.batch_size // mesh.size)
    if mesh.devices.flat[0].platform != "cpu":
        return share, 1
    most = POINTS * cores_each(mesh) // max(1, _points(stage.tasks))
    count = -(-share // max(1, most))
    return -(-share // count), count


def _points(tasks):
    """How many points a task has: as many as its masks have entries."""
    task = eqx.filter_eval_shape(tasks.sample, jr.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(task) if leaf.dtype == bool)
