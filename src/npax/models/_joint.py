import abc

from jaxtyping import Array, Bool, Float, PRNGKeyArray, Scalar

from ._base import AbstractNeuralProcess, State


class AbstractJointNeuralProcess(AbstractNeuralProcess):
    """A neural process that predicts all targets together, not only each by itself.

    `npax.sample` draws through it. Joint log-likelihoods are never to be compared with those of targets one by one.
    """

    @abc.abstractmethod
    def sample(
        self,
        state: State,
        xt: Float[Array, "nt dx"],
        key: PRNGKeyArray,
        n: int = 1,
        *,
        mask: Bool[Array, " nt"] | None = None,
        include_noise: bool = True,
    ) -> Float[Array, "n nt dy"]:
        """`n` draws of all targets together: new observations, or the noiseless function where the likelihood tells
        them apart. Targets under a `False` in `mask` influence no other, and what is drawn for them is arbitrary."""

    @abc.abstractmethod
    def joint_log_prob(
        self,
        state: State,
        xt: Float[Array, "nt dx"],
        yt: Float[Array, "nt dy"],
        mask: Bool[Array, " nt"] | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> Scalar:
        r"""$\log p(y_1, \ldots, y_{n_t} \mid x_t, D_c)$ of the targets under a `True`; `key` for models that draw."""
