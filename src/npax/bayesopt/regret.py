"""The benchmark of Bayesian optimisation: how far from the true minimum searches end (BO-1D)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray
from tinygp.kernels import Kernel

from ..arguments import whole_number
from ..tasks import GPTask
from .acquisition import AbstractAcquisition
from .surrogate import AbstractSurrogate, Evaluations, GPSurrogate


class Problem(eqx.Module):
    """A function known at all candidates, and the kernel that it was drawn with, for oracles."""

    x: Float[Array, "*batch n d"]
    f: Float[Array, "*batch n"]
    kernel: Kernel


class Search(eqx.Module):
    r"""What a search did, and its regret: how far above the true minimum $f^\star$ it was.

    **Shapes:** `chosen [n_init+n_iter]`: the candidates evaluated, in order; `y`: the values seen there. `simple
    [n_iter+1]`: $\min_{s \le t} f(x_s) - f^\star$ after the initial evaluations and after each iteration.
    `cumulative [n_iter]`: $\sum_{s \le t} f(x_s) - f^\star$ over the iterations. `recommended`: the regret of the
    evaluated candidate where the surrogate's mean is lowest at the end. All of the noiseless function.
    """

    chosen: Int[Array, "*batch slots"]
    y: Float[Array, "*batch slots"]
    simple: Float[Array, "*batch one_more"]
    cumulative: Float[Array, "*batch iterations"]
    recommended: Float[Array, "*batch"]


def draw_problem(tasks: GPTask, key: PRNGKeyArray) -> Problem:
    """A function of the task: its candidates are the task's targets, those uniformly drawn first.

    A draw that broke down is NaN everywhere.
    """
    task, kernel = tasks.sample_with_kernel(key)
    return Problem(task.xt, jnp.where(task.mask_t, task.yt[:, 0], jnp.nan), kernel)


def search(
    surrogate: AbstractSurrogate | None,
    acquisition: AbstractAcquisition,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    noise_std: float = 0.1,
    n_init: int = 10,
    n_iter: int = 50,
) -> Search:
    """One search for the minimum of a function among its candidates, jittable; `jax.vmap` does many side by side.

    It begins with the first `n_init` candidates, which `draw_problem` puts at random places. Then the candidate that
    promises most is evaluated, again and again if it still does: values carry noise of standard deviation
    `noise_std`. The evaluations live in `n_init + n_iter` slots with a mask, so one program serves all iterations.

    `surrogate`: it sees raw coordinates and values; `None` is the oracle, which knows kernel and noise.

    **Raises:** `ValueError` unless `n_init` is at least 1 and at most the number of candidates, or for a negative
    `n_iter`.
    """
    whole_number(0, n_init=n_init, n_iter=n_iter)
    if not 1 <= n_init <= problem.f.shape[0]:
        raise ValueError(f"`n_init` must be from 1 to {problem.f.shape[0]}, the number of candidates, got {n_init}.")
    surrogate = GPSurrogate(problem.kernel, noise_std) if surrogate is None else surrogate
    slots = n_init + n_iter
    noise_key, step_key = jr.split(key)
    noise = noise_std * jr.normal(noise_key, (slots,))

    def seen(chosen, count):
        return Evaluations(problem.x[chosen], problem.f[chosen] + noise, jnp.arange(slots) < count)

    def step(chosen, now):
        count, key = now
        promises = acquisition(surrogate, seen(chosen, count), problem.x, key)
        return chosen.at[count].set(jnp.argmax(promises)), None

    start = jnp.where(jnp.arange(slots) < n_init, jnp.arange(slots), 0)
    chosen, _ = jax.lax.scan(step, start, (jnp.arange(n_init, slots), jr.split(step_key, n_iter)))
    end = seen(chosen, slots)
    above = problem.f[chosen] - jnp.min(problem.f)
    mean, _ = surrogate.moments(end, end.x)
    return Search(
        chosen=chosen,
        y=end.y,
        simple=jax.lax.cummin(above)[n_init - 1 :],
        cumulative=jnp.cumsum(above[n_init:]),
        recommended=above[jnp.argmin(mean)],
    )


@eqx.filter_jit
def search_all(
    surrogate: AbstractSurrogate | None,
    acquisition: AbstractAcquisition,
    problems: Problem,
    keys: Key[Array, " n"],
    *,
    noise_std: float = 0.1,
    n_init: int = 10,
    n_iter: int = 50,
    batch_size: int = 8,
) -> Search:
    """`search` for each of many problems, `batch_size` of them side by side, in one compiled program.

    **Good values** of `batch_size`: a few on CPUs, whose caches then hold the intermediate values (twice as fast as a
    hundred); all on accelerators.
    """

    if keys.shape != problems.f.shape[:1]:
        raise ValueError(f"`keys` must be one for each of {len(problems.f)} problems, got the shape {[*keys.shape]}.")

    def one(pair):
        return search(surrogate, acquisition, *pair, noise_std=noise_std, n_init=n_init, n_iter=n_iter)

    if n_iter == 0:  # `lax.map` makes no groups of empty results
        return jax.vmap(lambda *pair: one(pair))(problems, keys)
    return jax.lax.map(one, (problems, keys), batch_size=min(batch_size, len(keys)))
