import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float
from tinygp.kernels import Kernel

from ..task import Task
from .exact import exact_posterior, refuse_columns


def bayes_mixture(
    kernels: Kernel,
    weights: Float[Array, " nodes"],
    noise_std: float,
    task: Task,
    *,
    target_noise_std: float = 0.0,
    keep: int = 128,
) -> dist.MixtureSameFamily:
    r"""The exact posterior predictive with the kernel's hyper-parameters integrated out,

    $$p(f_t \mid D_c) = \sum_q \frac{w_q\, p(y_c \mid \theta_q)}{\sum_r w_r\, p(y_c \mid \theta_r)}\,
      \mathcal N(f_t; m_q, v_q):$$

    a mixture of Gaussians over the nodes $\theta_q$ of a quadrature of the prior. Its negative log-likelihood is the
    **Bayes floor**: no predictor that does not know the hyper-parameters has a lower one in expectation. The mixture
    over a coarse quadrature is such a predictor itself, so the error of a quadrature is on the safe side: upwards.

    Of more than `keep` nodes the evidence, in float32, decides which count: `keep` of them, at even steps of the
    cumulated posterior weights, in equal parts.

    **Arguments:** `kernels`: a tinygp kernel whose arrays have a leading axis of nodes, and `weights` that sum to
    one; a kernel prior's `quadrature` gives both. **Returns** a distribution at the task's targets, over the noiseless
    function or observations whose noise is `target_noise_std`: batch shape `[nt]`, event shape `[]`; one column of
    `y`.
    **Cost:** the evidence of every node, nc³/3, and the posterior of at most `keep`, nc³/3 + nc² nt.
    **Good values:** 64 nodes for one length scale; call it under `jax.enable_x64()`.
    """

    refuse_columns(task)
    thinned = weights.shape[0] > keep
    if thinned:
        chosen = _likely(kernels, weights, noise_std, task, keep)
        kernels = jax.tree.map(lambda a: a[chosen], kernels)
    mean, variance, evidence = jax.vmap(
        lambda kernel: exact_posterior(kernel, noise_std**2, task.xc, task.yc[:, 0], task.xt, task.mask_c)
    )(kernels)
    logits = jnp.zeros_like(evidence) if thinned else jnp.log(weights) + evidence
    logits = jnp.broadcast_to(logits, (task.xt.shape[0], logits.shape[0]))
    parts = dist.Normal(mean.T, jnp.sqrt(variance + target_noise_std**2).T)
    return dist.MixtureSameFamily(dist.Categorical(logits=logits), parts)


def _likely(kernels, weights, noise_std, task, keep):
    """Indices of `keep` nodes, as often as their posterior weight says."""
    kernels, weights, task = jax.tree.map(
        lambda a: a.astype(jnp.float32) if jnp.issubdtype(a.dtype, jnp.floating) else a, (kernels, weights, task)
    )

    def evidence(kernel):
        return exact_posterior(kernel, noise_std**2, task.xc, task.yc[:, 0], task.xt[:0], task.mask_c)[2]

    logits = jnp.log(weights) + jax.lax.map(evidence, kernels, batch_size=256)
    share = jnp.cumsum(jax.nn.softmax(jnp.where(jnp.isnan(logits), -jnp.inf, logits)))
    return jnp.searchsorted(share, share[-1] * (jnp.arange(keep, dtype=share.dtype) + 0.5) / keep)
