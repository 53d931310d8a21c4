import equinox as eqx
from jaxtyping import Array, Float

from ..task import Task


class PosteriorTask(eqx.Module):
    """A task with the exact posterior of its targets given its hidden hyper-parameters: Gaussian, per value.

    **Shapes:** `mean`, `variance` (of the noiseless function) and `noise` (variance that a new observation adds), each
    `[nt dy]`. `task.yt` is a draw from the posterior, each target on its own.
    """

    task: Task
    mean: Float[Array, "*batch nt dy"]
    variance: Float[Array, "*batch nt dy"]
    noise: Float[Array, "*batch nt dy"]
