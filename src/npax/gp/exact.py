import math

import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Scalar
from tinygp.kernels import Kernel

from ..arguments import booleans, instance
from ..linalg import cholesky, solve_lower
from ..task import Task


def exact_posterior(
    kernel: Kernel,
    noise: float | Float[Array, ""] | Float[Array, " nc"],
    xc: Float[Array, "nc dx"],
    yc: Float[Array, " nc"],
    xt: Float[Array, "nt dx"],
    mask: Bool[Array, " nc"],
) -> tuple[Float[Array, " nt"], Float[Array, " nt"], Scalar]:
    r"""Mean and variance of the noiseless function at `xt`, and the log evidence $\log p(y_c)$.

    With $K_{cc} + \sigma^2 I = L L^\top$ and $A = L^{-1} K_{ct}$ the posterior mean is $A^\top L^{-1} y_c$ and the
    variance $k_{tt} - \sum A^2$. Points where `mask` is `False` count for nothing. `noise` is the variance
    $\sigma^2$ of each observation, one for all or one for each.

    **Cost:** nc³/3 + nc² nt multiplications. **Pitfalls:** in float32 the noise must be at least about nc epsilon;
    call it under `jax.enable_x64()` for references.

    **Raises:** `ValueError` for other shapes; `TypeError` for what is no kernel of tinygp, and no mask of booleans.
    """
    instance(Kernel, kernel=kernel)
    booleans(mask=mask)
    n = len(xc)
    shapes = {name: jnp.shape(a) for name, a in {"xc": xc, "yc": yc, "xt": xt, "mask": mask, "noise": noise}.items()}
    fit = len(shapes["xc"]) == 2 and shapes["yc"] == shapes["mask"] == (n,) and shapes["noise"] in ((), (n,))
    if not fit or len(shapes["xt"]) != 2 or shapes["xt"][1] != shapes["xc"][1]:
        raise ValueError(
            "`xc`, `yc`, `xt`, `mask` and `noise` must have the shapes [nc, dx], [nc], [nt, dx], [nc] and [] or [nc]; "
            f"got {', '.join(str([*shape]) for shape in shapes.values())}. Take the columns of `y` one by one."
        )
    xc, yc = jnp.where(mask[:, None], xc, 0.0), jnp.where(mask, yc, 0.0)
    both = mask[:, None] & mask[None, :]
    k_cc = jnp.where(both, kernel(xc, xc), 0.0) + jnp.diag(jnp.where(mask, noise, 1.0))
    k_ct = jnp.where(mask[:, None], kernel(xc, xt), 0.0)
    chol = cholesky(k_cc)
    solved = solve_lower(chol, jnp.column_stack([k_ct, yc]))
    a, white = solved[:, :-1], solved[:, -1]
    variance = kernel(xt) - jnp.sum(jnp.square(a), axis=0)
    # The determinant's masked rows are ones; of the squares, zeros.
    log_evidence = -0.5 * jnp.sum(jnp.square(white)) - jnp.sum(jnp.log(jnp.diagonal(chol)))
    log_evidence = log_evidence - 0.5 * math.log(2 * math.pi) * jnp.sum(mask, dtype=yc.dtype)
    return white @ a, jnp.maximum(variance, jnp.finfo(variance.dtype).eps), log_evidence


def refuse_columns(task: Task) -> None:
    """**Raises** `ValueError` for more columns of `y` than one."""
    if task.yc.shape[-1] != 1:
        raise ValueError(f"`task` must have one column of `y`, got {task.yc.shape[-1]}: take them one by one.")


def oracle(kernel: Kernel, noise_std: float, task: Task, *, target_noise_std: float = 0.0) -> dist.Normal:
    """The Gaussian process that knows the kernel and the noise, at the task's targets: the noiseless function, or
    observations whose noise is `target_noise_std`.

    Batch shape `[nt]`, event shape `[]`; one column of `y`.
    """
    refuse_columns(task)
    mean, variance, _ = exact_posterior(kernel, noise_std**2, task.xc, task.yc[:, 0], task.xt, task.mask_c)
    return dist.Normal(mean, jnp.sqrt(variance + target_noise_std**2))
