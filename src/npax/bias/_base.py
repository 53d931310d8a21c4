import abc

import equinox as eqx
from jaxtyping import Array, Float


class AbstractBias(eqx.Module):
    r"""A term that is added to the attention logits: $q^\top k / \sqrt{d_k} + B_h(x_q, x_k)$ (KR2, eq. 4).

    A bias maps two sets of locations to one matrix per head. Attention calls it block by block, so it must be a
    function of the pair of points alone. Biases add up: `rbf + causal` is a bias.

    To write your own, subclass and give `__call__`; keep its gradient finite where two points coincide.
    """

    @abc.abstractmethod
    def __call__(self, xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "heads nq nk"]:
        """The bias of every head for every pair of a query and a key location."""

    def __add__(self, other: "AbstractBias") -> "SumBias":
        return SumBias((*terms(self), *terms(other)))


class SumBias(AbstractBias):
    """The sum of several biases; what `bias_a + bias_b` makes."""

    parts: tuple[AbstractBias, ...]

    def __call__(self, xq, xk):
        first, *rest = (part(xq, xk) for part in self.parts)
        return sum(rest, start=first)


def terms(bias: AbstractBias) -> tuple[AbstractBias, ...]:
    return bias.parts if isinstance(bias, SumBias) else (bias,)
