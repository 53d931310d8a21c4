"""Autoregressive chains: targets in a random order, each predicted from the context and from those before it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray
from numpyro.distributions import Distribution

from ..devices import WORKERS, cores, in_threads, local_mesh
from ..likelihoods import noiseless
from ..models import AbstractNeuralProcess
from ..models._base import condition_on
from ..progress import Progress
from .buckets import SMALLEST, bucket, pad
from .standardise import MOST_ERROR

TOGETHER = 64
"""Chains of a compiled call, at most; a power of two."""
PAIRS = 2**18
"""Pairs of points of a compiled call, over all its chains, on CPUs: more do not fit their caches."""
STEPS = 100
"""Parts in which a progress bar is told of them."""
WORTH = 2**16
"""Points that a smaller program must save, over all chains and steps, to be worth compiling: seconds on a CPU."""


class Asked(NamedTuple):
    """A context and what is asked of it: `x [rows dx]`, `y [rows dy]` and known errors, if any, of which the first
    `seen` count, with room for the targets behind them; targets `xt [slots dx]`, of which the first `count` do."""

    x: Any
    y: Any
    error: Any
    seen: Any
    xt: Any
    count: Any

    @classmethod
    def of(cls, xc: np.ndarray, yc: np.ndarray, error: np.ndarray | None, xt: np.ndarray) -> "Asked":
        rows = _rows(len(xc), len(xt))
        arrays = pad(xc, rows), pad(yc, rows), padded_error(error, rows), len(xc), pad(xt, bucket(len(xt))), len(xt)
        return cls(*(None if a is None else np.asarray(a) for a in arrays))


def padded_error(error: np.ndarray | None, rows: int) -> np.ndarray | None:
    """Known errors of a context, if any, as a model takes them."""
    return None if error is None else pad(np.minimum(error, MOST_ERROR).astype(np.float32), rows)


def draw(
    model: AbstractNeuralProcess, asked: Asked, n: int, key: PRNGKeyArray, *, include_noise: bool, progress: bool
) -> Float[Array, "n slots dy"]:
    """`n` samples of the targets together. They are drawn in groups, on CPUs a group on each core."""
    traced, together = isinstance(key, Tracer), _together(n, len(asked.x))
    groups, count = jr.split(key, (-(-n // together), together)), int(asked.count)
    stages = _stages(int(asked.seen), count, n)
    parts = list(_parts(stages, max(1, count // STEPS) if progress else count))

    def steps(chains, start, end, rows):
        return jax.block_until_ready(_continued(model, asked, chains, jnp.asarray(start), jnp.asarray(end), rows))

    with Progress("Sampling", len(groups) * together * count, shown=progress) as bar:

        def group(keys):
            chains = _begun(asked, keys)
            for start, end, rows in parts:
                chains = steps(chains, start, end, rows)
                bar.advance(together * (end - start))
            return _ended(asked, chains if include_noise else _without_noise(model, asked, chains))

        if traced:
            return jnp.concatenate([group(keys) for keys in groups])[:n]
        for _, _, rows in stages:  # compiled here, by no steps, and not by each of the threads
            steps(_begun(asked, groups[0]), 0, 0, rows)
        return jnp.concatenate(list(in_threads(group, groups)))[:n]


@eqx.filter_jit
def log_prob(
    model: AbstractNeuralProcess, asked: Asked, yt: Float[Array, "slots dy"], keys: Array
) -> Float[Array, " orders"]:
    """Log-likelihoods of the targets together, for each key in a random order."""

    def score(key):
        order = _order(key, asked)
        x, y = _behind(asked, asked.x, asked.xt[order]), _behind(asked, asked.y, yt[order])

        def step(i, total):
            scores = _next(model, asked, x, y, i, len(x)).log_prob(yt[order[i]][None])
            return total + jnp.asarray(scores)[0]

        return jax.lax.fori_loop(0, asked.count, step, jnp.zeros(()))

    return jax.lax.map(score, keys)


class _Chains(NamedTuple):
    """Samples on their way, `[s ...]`: the order of their targets, a key for each and one more, and the context with
    the targets behind it, in that order."""

    order: Array
    keys: PRNGKeyArray
    x: Array
    y: Array


@eqx.filter_jit
def _begun(asked, keys) -> _Chains:
    def begun(key):
        order_key, draw_key = jr.split(key)
        order = _order(order_key, asked)
        return _Chains(order, jr.split(draw_key, len(order) + 1), _behind(asked, asked.x, asked.xt[order]), asked.y)

    return jax.vmap(begun)(keys)


@eqx.filter_jit
def _continued(model, asked, chains, start, end, rows) -> _Chains:
    """The chains after the targets from `start` to `end`, which need the first `rows` points."""

    def continued(chain):
        def step(i, y):
            distribution = _next(model, asked, chain.x, y, i, rows)
            drawn = one_draw(distribution, chain.keys[i], include_noise=True)[0]
            return y.at[asked.seen + i].set(drawn.astype(y.dtype))  # counts are whole numbers

        return chain._replace(y=jax.lax.fori_loop(start, end, step, chain.y))

    return jax.vmap(continued)(chains)


@eqx.filter_jit
def _without_noise(model, asked, chains) -> _Chains:
    """The function in the place of its observations, where the model tells them apart."""

    def without_noise(chain):
        known = jnp.arange(len(chain.x)) < asked.seen + asked.count
        observation = model.predict(condition_on(model, chain.x, chain.y, known, asked.error), asked.xt[chain.order])
        if noiseless(observation) is observation:
            return chain
        drawn = one_draw(observation, chain.keys[-1], include_noise=False)
        return chain._replace(y=_behind(asked, chain.y, drawn.astype(chain.y.dtype)))

    return jax.vmap(without_noise)(chains)


@eqx.filter_jit
def _ended(asked, chains) -> Array:
    """The drawn values in the order of the targets, `[s slots dy]`."""

    def ended(chain):
        drawn = jnp.take(chain.y, asked.seen + jnp.arange(len(chain.order)), axis=0, mode="clip")
        return jnp.zeros_like(drawn).at[chain.order].set(drawn)

    return jax.vmap(ended)(chains)


def _next(model, asked, x, y, i, rows):
    """The distribution of the `i`-th target given the context and the targets before it, all among the first `rows`."""
    error = None if asked.error is None else asked.error[:rows]
    state = condition_on(model, x[:rows], y[:rows], jnp.arange(rows) < asked.seen + i, error)
    return model.predict(state, jax.lax.dynamic_slice_in_dim(x, asked.seen + i, 1))


def one_draw(distribution: Distribution, key: PRNGKeyArray, include_noise: bool) -> Array:
    """A draw of new observations, or of the noiseless function where a distribution tells them apart."""
    return jnp.asarray((distribution if include_noise else noiseless(distribution)).sample(key))


def _behind(asked, of_context, of_targets):
    """Rows of the context, and behind them those of the targets."""
    at = jnp.arange(len(of_context)) - asked.seen
    return jnp.where(at[:, None] < 0, of_context, jnp.take(of_targets, at, axis=0, mode="clip"))


def _order(key, asked):
    """A random order of the targets; slots that are none stay behind them."""
    rank = jnp.where(jnp.arange(len(asked.xt)) < asked.count, jr.uniform(key, (len(asked.xt),)), 2.0)
    return jnp.argsort(rank)


def _together(n, rows):
    """Chains of a compiled call, a power of two: few numbers, few programs."""
    if local_mesh().devices.flat[0].platform != "cpu":
        return min(_no_less(n), TOGETHER)
    most = max(1, min(PAIRS // rows**2, TOGETHER))
    return min(_no_less(-(-n // min(cores(), WORKERS))), 1 << (most.bit_length() - 1))


def _no_less(n):
    """The smallest power of two that is no less than `n`."""
    return 1 << (n - 1).bit_length()


def _rows(seen, count):
    """The padded size of a context with targets behind it."""
    return min(bucket(seen + count), bucket(seen) + bucket(count))


def _stages(seen, count, n):
    """From which target to which, and among how many points each stage finds the context and the targets before."""
    stages, end, rows = [], count, _rows(seen, count)
    fewer = bucket(count)
    while fewer > SMALLEST:
        fewer = bucket(fewer * 2 // 3)
        if fewer < end and n * fewer * (rows - _rows(seen, fewer)) > WORTH:
            stages.append((fewer, end, rows))
            end, rows = fewer, _rows(seen, fewer)
    return [*reversed([*stages, (0, end, rows)])]


def _parts(stages, steps):
    """The stages in parts of at most so many steps."""
    for start, end, rows in stages:
        for first in range(start, end, steps):
            yield first, min(first + steps, end), rows
