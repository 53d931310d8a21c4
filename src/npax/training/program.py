"""The steps of a training as one compiled program, which trainings alike share."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax.sharding import Mesh, PartitionSpec as P, get_abstract_mesh
from jaxtyping import Array, Int, PRNGKeyArray

from ..tasks import Stage
from .step import step

PROGRAMS = 8
"""Compiled trainings that are kept for a `fit` alike, each of some 100 MB; beyond this number all are forgotten."""


class TrainState(eqx.Module):
    """All that a training carries from step to step; with the key, it determines the rest of the run."""

    model: Any
    opt_state: Any
    step: Int[Array, ""]
    skipped: Int[Array, "*seeds"]


def start(
    model: Any, optimizer: optax.GradientTransformation, seeds: int, key: PRNGKeyArray, drawn: bool
) -> TrainState:
    """Before the first step; `drawn`: `model` is a function of a key, and seeds start elsewhere."""

    def one(key):
        module = _made(model, key) if drawn else model
        module = jax.tree.map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, module)
        opt_state = optimizer.init(eqx.filter(module, eqx.is_inexact_array))
        return module, opt_state

    if seeds == 1:
        module, opt_state = one(key)
    else:
        module, opt_state = eqx.filter_vmap(one)(jr.split(key, seeds))
    skipped = jnp.zeros((seeds,) if seeds > 1 else (), jnp.int32)
    return TrainState(module, opt_state, jnp.zeros((), jnp.int32), skipped)


def _made(model, key):
    made = model(key)
    if not isinstance(made, eqx.Module):
        raise TypeError(f"`model` must be a function of a key that makes a model; it returned {made!r}.")
    return made


class Chunk(NamedTuple):
    """All that some steps depend on, and thus what tells their program from others: a `number` of them, of which it may
    be any up to the `most`."""

    state: TrainState
    key: PRNGKeyArray
    stage: Stage
    number: Int[np.ndarray, ""]
    most: int
    objective: Callable
    optimizer: optax.GradientTransformation
    seeds: int
    mesh: Mesh
    contents: str = ""
    """Of the sampler, where it is a plain object: such ones are told apart by identity, whatever they have come to
    hold."""


def run(chunk: Chunk) -> tuple[TrainState, np.ndarray]:
    """The new state and the losses, `[number]` or `[number seeds]`. A second chunk alike compiles nothing, whichever
    `fit` it belongs to."""
    arrays, rest = eqx.partition(chunk, is_array)
    leaves, structure = jax.tree.flatten(rest)
    around = contextlib.nullcontext() if get_abstract_mesh().empty else jax.set_mesh(chunk.mesh)  # a user's own mesh
    with around:
        arrays, losses = _program(arrays, tuple(leaves), structure)
    return eqx.combine(arrays, rest.state), np.asarray(losses)[: chunk.number]


def is_array(leaf: Any) -> bool:
    """As `equinox.is_array`, and numpy's arrays, which tasks and objectives may hold."""
    return isinstance(leaf, jax.Array | np.ndarray)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _program(arrays, leaves, structure):
    rest = jax.tree.unflatten(structure, leaves)

    def on_device(arrays):
        chunk = eqx.combine(arrays, rest)

        def one(model, opt_state, key):
            return step(model, opt_state, chunk.stage, key, chunk.objective, chunk.optimizer, chunk.mesh)

        def body(i, carry):
            arrays, losses = carry
            state = eqx.combine(arrays, rest.state)
            step_key = jr.fold_in(chunk.key, state.step)
            if chunk.seeds == 1:
                model, opt_state, loss, bad = one(state.model, state.opt_state, step_key)
            else:
                keys = jr.split(step_key, chunk.seeds)
                model, opt_state, loss, bad = eqx.filter_vmap(one)(state.model, state.opt_state, keys)
            state = TrainState(model, opt_state, state.step + 1, state.skipped + bad.astype(jnp.int32))
            return eqx.filter(state, eqx.is_array), losses.at[i].set(loss.astype(losses.dtype))

        losses = jnp.zeros((chunk.most,) if chunk.seeds == 1 else (chunk.most, chunk.seeds))
        return jax.lax.fori_loop(0, chunk.number, body, (arrays.state, losses))

    return jax.shard_map(on_device, mesh=rest.mesh, in_specs=P(), out_specs=P(), check_vma=False)(arrays)


def forget_if_many() -> None:
    """Drops all compiled trainings where there are more than `PROGRAMS`."""
    if _program._cache_size() > PROGRAMS:  # pyright: ignore[reportAttributeAccessIssue]
        _program.clear_cache()  # pyright: ignore[reportAttributeAccessIssue]
