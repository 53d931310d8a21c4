import abc

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree


class AbstractTasks(eqx.Module):
    """A distribution over tasks: a pure, jittable function of a key. `fit` draws batches from it on the device.

    **Pitfalls:** on several CPU devices batches of matrices that `jnp.linalg` factorises can wait for each other for
    ever (jaxlib shares them among the threads of one pool): use `npax.linalg.cholesky`, which does not.
    """

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray) -> PyTree:
        """One task: a `Task`, or whatever PyTree the objective reads. Shapes are the same at every draw."""
