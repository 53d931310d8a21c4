import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

COEFFICIENTS = (
    1.00000007165512,
    0.6931469670636334,
    0.2402211972166789,
    0.05550713274293956,
    0.009675541452458873,
    0.0013276472066111955,
)
r"""Of the polynomial of degree 5 nearest to $2^f$ on $|f| \le 1/2$: relative error $7.5 \cdot 10^{-8}$."""

INTEGERS = 1.5 * 2**23
"""Added to a float32 below a few million, it leaves the whole part in the last bits."""


@jax.custom_jvp
def exp2_nonpositive(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """$2^x$ for $x$ at or below zero, on CPUs twice as fast as XLA's: absolute error below 3e-7 in float32.

    For sums of many exponentials, where nobody asks for the last bit of one: $2^x = 2^n 2^f$ with a whole $n$, which is
    added to the exponent of the number that a polynomial gives for $2^f$. Nothing here is a function of the library, so
    that the loop is vectorised wherever XLA puts it. Below $-126$ the result is $2^{-126}$, not zero.

    Other devices and precisions get `jnp.exp2`.
    """
    if x.dtype != jnp.float32:
        return jnp.exp2(x)
    return jax.lax.platform_dependent(x, cpu=_by_bits, default=jnp.exp2)


@exp2_nonpositive.defjvp
def _jvp(primals, tangents):
    y = exp2_nonpositive(*primals)
    return y, y * jnp.log(2.0).astype(y.dtype) * tangents[0]


def _by_bits(x):
    x = jnp.maximum(x, -126.0)
    whole = jax.lax.round(x, jax.lax.RoundingMethod.TO_NEAREST_EVEN)
    part = x - whole
    value = jnp.full_like(x, COEFFICIENTS[-1])
    for c in COEFFICIENTS[-2::-1]:
        value = value * part + c
    shift = jax.lax.bitcast_convert_type(whole + INTEGERS, jnp.int32) << 23
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(value, jnp.int32) + shift, jnp.float32)
