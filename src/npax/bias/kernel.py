from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import tinygp
from jaxtyping import Array, Float

from ._base import AbstractBias


class KernelBias(AbstractBias):
    r"""Any tinygp kernel as attention bias, one per head: $B_h(x_q, x_k) = \alpha_h K_h(x_q, x_k)$ (KR2, eq. 4).

    Sums and products of kernels are tinygp's: `ExpSquared(0.5) * ExpSineSquared(scale=1.0, gamma=1.0)`. Every
    floating-point hyper-parameter of a kernel becomes a trained parameter, as does the weight $\alpha_h$ (1 at the
    start); whole numbers, such as the order of a polynomial, stay as they are: write `scale=1.0` for what is trained.

    **Pitfall:** in several coordinates tinygp's `Exp`, `Matern32`, `Matern52`, `Cosine` and `ExpSineSquared` measure
    the sum of the distances along the axes, so that rotations matter; KR2's biases are of the Euclidean distance, as
    `Matern32(1.0, tinygp.kernels.distance.L2Distance())` is.

    **Arguments:** `kernels`: one kernel per head. Pick kernels with a finite gradient at distance 0 (tinygp's
    stationary kernels are) or apply them to other columns with `ColumnsBias`.
    """

    kernels: tuple[tinygp.kernels.Kernel, ...]
    alpha: Float[Array, " heads"]

    def __init__(self, kernels: Sequence[tinygp.kernels.Kernel]):
        rule = "`kernels` must be a list of tinygp kernels, one per head"
        if not isinstance(kernels, Sequence) or not all(isinstance(k, tinygp.kernels.Kernel) for k in kernels):
            raise TypeError(f"{rule}; got {kernels!r}.")
        if not kernels:
            raise ValueError(f"{rule}; got none.")
        self.kernels = jax.tree.map(_trained, tuple(kernels))
        self.alpha = jnp.ones(len(kernels))

    def __call__(self, xq, xk):
        return jnp.stack([a * kernel(xq, xk) for a, kernel in zip(self.alpha, self.kernels, strict=True)])


def _trained(leaf):
    numeric = isinstance(leaf, float | int) or eqx.is_array_like(leaf)
    inexact = numeric and jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
    return jnp.asarray(leaf, float) if inexact else leaf
