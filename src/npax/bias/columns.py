import operator
from collections.abc import Iterable
from typing import Any

import equinox as eqx

from ..arguments import instance
from ._base import AbstractBias, check_columns


def _whole_numbers(columns: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, columns if isinstance(columns, Iterable) else (columns,)))


class ColumnsBias(AbstractBias):
    r"""A bias that sees chosen columns of the locations only (KR2 §3.2): space, time, a covariate.

    `ColumnsBias(RBFNetworkBias(4, key=k1), (0, 1)) + ColumnsBias(RBFNetworkBias(4, key=k2), (2,))` treats space and
    time apart. **Raises** `ValueError` for locations without one of the columns.
    """

    bias: AbstractBias
    columns: tuple[int, ...] = eqx.field(static=True, converter=_whole_numbers)

    def __check_init__(self):
        instance(AbstractBias, bias=self.bias)
        if not self.columns:
            raise ValueError("`columns` must name at least one column of the locations, got none.")

    def __call__(self, xq, xk):
        columns = list(self.columns)
        check_columns(columns, xq.shape[1])
        return self.bias(xq[:, columns], xk[:, columns])
