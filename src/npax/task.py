"""The unit of meta-learning: one function, seen at context points, asked at target points."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .arrays import refuse_complex, refuse_datetimes, refuse_masks


class Task(eqx.Module):
    r"""One task: a context set $D_c = \{(x_c, y_c)\}$ and the targets $(x_t, y_t)$ to be predicted.

    A PyTree. One task has no batch axis; a batch of tasks is a `Task` whose arrays have leading axes, as
    `jax.vmap` over a sampler makes it. Sets of different sizes are padded to one shape and told apart by their
    masks: whatever stands under a `False` (NaN too) counts for nothing, in values and in gradients.

    `error_c`: standard deviations of that part of the noise on each value of the context that is known beforehand, for
    models that take them (`TNPKR` with `errors=True`); None, or zeros, where all is to be inferred.

    **Shapes:** `xc [nc dx]`, `yc [nc dy]`, `mask_c [nc]`, `xt [nt dx]`, `yt [nt dy]`, `mask_t [nt]`, `error_c` of `yc`.
    """

    xc: Float[Array, "*batch nc dx"]
    yc: Float[Array, "*batch nc dy"]
    mask_c: Bool[Array, "*batch nc"]
    xt: Float[Array, "*batch nt dx"]
    yt: Float[Array, "*batch nt dy"]
    mask_t: Bool[Array, "*batch nt"]
    error_c: Float[Array, "*batch nc dy"] | None = None

    @classmethod
    def of(cls, xc, yc, xt, yt) -> "Task":
        """A task without padding: every point counts. In float32 (float64 where JAX has that by default).

        **Raises** `ValueError` for shapes that do not fit and values under a mask of NumPy's; `TypeError` for dates,
        whose unit is no one's, and complex numbers.
        """
        refuse_datetimes(xc, yc, xt, yt)
        refuse_complex(xc, yc, xt, yt)
        refuse_masks(xc=xc, yc=yc, xt=xt, yt=yt)
        xc, yc, xt, yt = (jnp.asarray(a, jnp.result_type(float)) for a in (xc, yc, xt, yt))
        for name, x, y in (("c", xc, yc), ("t", xt, yt)):
            if x.ndim < 2 or x.ndim != y.ndim or x.shape[:-1] != y.shape[:-1]:
                raise ValueError(
                    f"`x{name}` must have the shape [n, dx], a row for each point, and `y{name}` [n, dy] with as many; "
                    f"got {[*x.shape]} and {[*y.shape]}."
                )
        for name, c, t in (("x", xc, xt), ("y", yc, yt)):
            if (*c.shape[:-2], c.shape[-1]) != (*t.shape[:-2], t.shape[-1]):
                raise ValueError(
                    f"`{name}c` and `{name}t` must have the same columns, and the same leading axes in a batch of "
                    f"tasks; got {[*c.shape]} and {[*t.shape]}."
                )
        return cls(xc, yc, jnp.ones(xc.shape[:-1], bool), xt, yt, jnp.ones(xt.shape[:-1], bool))
