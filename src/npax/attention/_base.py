import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Bool, Float

from ..bias import AbstractBias

Memory = Any
"""What an attention keeps of its keys and values; a PyTree whose form each mechanism chooses."""


class AbstractAttention(eqx.Module):
    """How queries read from keys and values. All heads of one task at once: `[heads n d]`.

    Two verbs, so that a neural process can condition once and predict many times: `memorise` does all that depends
    on the keys alone, `recall` answers any number of queries. The exact mechanisms remember keys and values
    themselves; linear-cost mechanisms remember a matrix of fixed size. A `False` in `mask` hides a key and all it
    holds; queries that see no key receive zeros.
    """

    @abc.abstractmethod
    def memorise(
        self,
        k: Float[Array, "heads nk d"],
        v: Float[Array, "heads nk dv"],
        xk: Float[Array, "nk dx"],
        mask: Bool[Array, " nk"],
    ) -> Memory:
        """Everything that later queries need of the keys."""

    @abc.abstractmethod
    def recall(
        self, q: Float[Array, "heads nq d"], xq: Float[Array, "nq dx"], memory: Memory, bias: AbstractBias | None
    ) -> Float[Array, "heads nq dv"]:
        """The values that the queries read."""
