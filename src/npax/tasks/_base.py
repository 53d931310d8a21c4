import abc

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree


class AbstractTasks(eqx.Module):
    """A distribution over tasks: a pure, jittable function of a key. `fit` draws batches from it on the device."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray) -> PyTree:
        """One task: a `Task`, or whatever PyTree the objective reads. Shapes are the same at every draw."""
