import operator

import equinox as eqx
import jax.numpy as jnp

from ..arguments import whole_number
from ._base import AbstractBias, check_columns


class CausalBias(AbstractBias):
    r"""Forbids looking ahead: $-\infty$ where the key's time lies after the query's, 0 elsewhere (KR2, eq. 5).

    **Arguments:** `heads`; `column`: which column of the locations is time (default the last). A query before all
    keys attends to nothing and receives zeros. Has no parameters.
    """

    heads: int = eqx.field(static=True)
    column: int = eqx.field(static=True, default=-1, converter=operator.index)

    def __check_init__(self):
        whole_number(1, heads=self.heads)

    def __call__(self, xq, xk):
        check_columns([self.column], xq.shape[1])
        ahead = xk[None, :, self.column] > xq[:, None, self.column]
        return jnp.broadcast_to(jnp.where(ahead, -jnp.inf, 0.0), (self.heads, *ahead.shape))
