"""Optimisers and schedules that train neural processes well, as optax transformations."""

import functools
import inspect
from collections.abc import Callable
from typing import TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from optax.contrib import MuonDimensionNumbers, muon as optax_muon

Make = TypeVar("Make", bound=Callable)


def _remembered(make: Make) -> Make:
    """The same arguments give the same optimiser, so that a second `fit` with them compiles nothing; arguments without
    a hash, such as arrays, a new one each time."""
    known, signature = functools.lru_cache(make), inspect.signature(make)

    @functools.wraps(make)
    def optimizer(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        try:
            hash((given.args, *given.kwargs.values()))
        except TypeError:
            return make(*args, **kwargs)
        return known(*given.args, **given.kwargs)

    return cast(Make, optimizer)


@_remembered
def yogi(steps: int, learning_rate: float = 1e-3) -> optax.GradientTransformation:
    """KR2's optimiser: Yogi, one cosine down to zero, gradient norm clipped at 3."""
    return optax.chain(optax.clip_by_global_norm(3.0), optax.yogi(optax.cosine_decay_schedule(learning_rate, steps)))


@_remembered
def adamw(steps: int, learning_rate: float = 1e-3, weight_decay: float = 1e-4) -> optax.GradientTransformation:
    """AdamW with warm-up and cosine, gradient norm clipped at 3. Weights decay; biases, scales, the parameters of
    kernels and the fixed projections of random features do not."""
    schedule = warmup_cosine(steps, learning_rate)
    decaying = optax.adamw(schedule, weight_decay=weight_decay, mask=_weights)
    return optax.chain(optax.clip_by_global_norm(3.0), decaying)


@_remembered
def muon(
    steps: int, learning_rate: float = 1e-2, adam_learning_rate: float = 1.5e-3, *, schedule=None
) -> optax.GradientTransformation:
    """Muon (orthogonalised momentum) for weight matrices, Adam for all else, gradient norm clipped at 3.

    On GP-1D it reaches a given likelihood in about half the steps of AdamW. `schedule(steps, peak)` makes each
    learning rate (default `warmup_cosine`).
    """
    schedule = warmup_cosine if schedule is None else schedule
    return optax.chain(
        optax.clip_by_global_norm(3.0),
        optax_muon(
            schedule(steps, learning_rate),
            adam_learning_rate=schedule(steps, adam_learning_rate),
            muon_weight_dimension_numbers=_matrices,
        ),
    )


def warmup_cosine(steps: int, peak: float):
    """Linear rise over the first 5 % of the steps (at most 500), then a cosine down to zero."""
    rise = max(1, min(500, steps // 20))
    return optax.warmup_cosine_decay_schedule(peak / rise, peak, rise, max(steps, 2))


def warmup_stable_decay(steps: int, peak: float, fall: float = 0.75):
    """Rise, a constant rate, then a straight line down to zero over the last share `fall` of the steps.

    A run can be prolonged from any of its checkpoints: with more `steps` the rate goes up again.
    """
    rise = max(1, min(300, steps // 20))
    down = max(1, min(int(fall * steps), steps - rise))
    return optax.join_schedules(
        [
            optax.linear_schedule(peak / rise, peak, rise),
            optax.constant_schedule(peak),
            optax.linear_schedule(peak, 0.0, down),
        ],
        [rise, steps - down],
    )


def _weights(params):
    """Which leaves are weights of linear maps."""
    return jax.tree_util.tree_map_with_path(_is_weight, params)


def _is_weight(path, leaf):
    """Those of Equinox's norms, of one axis, are scales."""
    named = isinstance(path[-1], jax.tree_util.GetAttrKey) and path[-1].name == "weight"
    return named and eqx.is_array_like(leaf) and jnp.ndim(leaf) >= 2


def _matrices(params):
    """Muon's matrices: the weights of linear maps (stacked over blocks or not), but for those with a thin side."""

    def spec(path, leaf, of_equinox=False):
        if not (_is_weight(path, leaf) and min(leaf.shape[-2:]) >= 16):
            return None
        rows, columns = leaf.ndim - 2, leaf.ndim - 1
        return MuonDimensionNumbers(*(columns, rows) if of_equinox else (rows, columns))  # from what, to what

    def specs(path, part):
        if isinstance(part, eqx.nn.Linear):
            return jax.tree_util.tree_map_with_path(functools.partial(spec, of_equinox=True), part)
        return spec(path, part)

    return jax.tree_util.tree_map_with_path(specs, params, is_leaf=lambda part: isinstance(part, eqx.nn.Linear))
