import equinox as eqx

from ._base import AbstractBias


class ColumnsBias(AbstractBias):
    r"""A bias that sees chosen columns of the locations only (KR2 §3.2): space, time, a covariate.

    `ColumnsBias(RBFNetworkBias(4, key=k1), (0, 1)) + ColumnsBias(RBFNetworkBias(4, key=k2), (2,))` treats space and
    time apart.
    """

    bias: AbstractBias
    columns: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, xq, xk):
        columns = list(self.columns)
        return self.bias(xq[:, columns], xk[:, columns])
