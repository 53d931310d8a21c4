import abc
from collections.abc import Sequence
from typing import Any

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
        return SumBias((*terms(self), *terms(other))) if isinstance(other, AbstractBias) else NotImplemented

    def __radd__(self, other: Any) -> "AbstractBias":
        """`sum(biases)` starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


class SumBias(AbstractBias):
    """The sum of several biases; what `bias_a + bias_b` makes."""

    parts: tuple[AbstractBias, ...]

    def __call__(self, xq, xk):
        first, *rest = (part(xq, xk) for part in self.parts)
        return sum(rest, start=first)


def check_columns(columns: Sequence[int], dx: int) -> None:
    """**Raises** `ValueError` for columns that locations `[n dx]` do not have."""
    absent = [column for column in columns if not -dx <= column < dx]
    if absent:
        raise ValueError(f"There is no column {absent[0]}: the locations have {dx}, counted from 0.")


def terms(bias: AbstractBias) -> tuple[AbstractBias, ...]:
    return bias.parts if isinstance(bias, SumBias) else (bias,)
