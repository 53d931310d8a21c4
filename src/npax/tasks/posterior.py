import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..linalg import cholesky, solve_lower
from ..task import Task


class PosteriorTask(eqx.Module):
    """A task with the exact posterior of its targets given its hidden hyper-parameters: Gaussian, per value.

    **Shapes:** `mean`, `variance` (of the noiseless function) and `noise` (variance that a new observation adds), each
    `[nt dy]`. `task.yt` is a draw from the posterior, each target on its own. `xc`, `xt`: those of the task.
    """

    task: Task
    mean: Float[Array, "*batch nt dy"]
    variance: Float[Array, "*batch nt dy"]
    noise: Float[Array, "*batch nt dy"]

    @property
    def xc(self) -> Float[Array, "*batch nc dx"]:
        return self.task.xc

    @property
    def xt(self) -> Float[Array, "*batch nt dx"]:
        return self.task.xt


def draw_and_condition(
    key: PRNGKeyArray,
    k_cc: Float[Array, "nc nc"],
    k_ct: Float[Array, "nc nt"],
    k_tt: Float[Array, " nt"],
    noise: Float[Array, " nc"],
    mask: Bool[Array, " nc"],
) -> tuple[Float[Array, " nc"], Float[Array, " nt"], Float[Array, " nt"]]:
    r"""Context values drawn from a Gaussian process, and mean and variance of the noiseless targets given them.

    With $K_{cc} + \mathrm{diag}(\sigma^2) = L L^\top$, $y = L \epsilon$ and $A = L^{-1} K_{ct}$ the posterior mean is
    $A^\top \epsilon$ and its variance $k_{tt} - \sum A^2$. Points where `mask` is `False` are independent of all.

    **Cost:** one factorisation, nc³/3 + nc² nt multiplications.
    """
    both = mask[:, None] & mask[None, :]
    k_cc = jnp.where(both, k_cc, 0.0) + jnp.diag(jnp.where(mask, noise, 1.0))
    k_ct = jnp.where(mask[:, None], k_ct, 0.0)
    chol = cholesky(k_cc)
    white = jr.normal(key, mask.shape)
    a = solve_lower(chol, k_ct)
    return chol @ white, white @ a, jnp.maximum(k_tt - jnp.sum(jnp.square(a), axis=0), 1e-6)
