import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float
from tinygp.kernels import Kernel

from ..task import Task
from .exact import exact_posterior


def bayes_mixture(
    kernels: Kernel, weights: Float[Array, " nodes"], noise_std: float, task: Task
) -> dist.MixtureSameFamily:
    r"""The exact posterior predictive with the kernel's hyper-parameters integrated out,

    $$p(f_t \mid D_c) = \sum_q \frac{w_q\, p(y_c \mid \theta_q)}{\sum_r w_r\, p(y_c \mid \theta_r)}\,
      \mathcal N(f_t; m_q, v_q):$$

    a mixture of Gaussians over the nodes $\theta_q$ of a quadrature of the prior. Its negative log-likelihood is the
    **Bayes floor**: no predictor that does not know the hyper-parameters has a lower one in expectation.

    **Arguments:** `kernels`: a tinygp kernel whose arrays have a leading axis of nodes, and `weights` that sum to
    one; a kernel prior's `quadrature` gives both. **Returns** a distribution over the noiseless function at the
    task's targets: batch shape `[nt]`, event shape `[]`; one column of `y`.
    **Good values:** 64 nodes for one length scale; call it under `jax.enable_x64()`.
    """
    mean, variance, log_evidence = jax.vmap(
        lambda kernel: exact_posterior(kernel, noise_std**2, task.xc, task.yc[:, 0], task.xt, task.mask_c)
    )(kernels)
    logits = jnp.broadcast_to(jnp.log(weights) + log_evidence, (task.xt.shape[0], weights.shape[0]))
    return dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(mean.T, jnp.sqrt(variance).T))
