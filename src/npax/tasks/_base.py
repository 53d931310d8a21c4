import abc

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree


class AbstractTasks(eqx.Module):
    """A distribution over tasks: a pure function of a key. `fit` draws batches from it on the device. Those that hold
    data are for `eqx.filter_jit`: `jax.jit` does not take their methods.

    **Pitfalls:** on several CPU devices batches of matrices that `jnp.linalg` factorises can wait for each other for
    ever (jaxlib shares them among the threads of one pool): `fit` then uses one device, with a warning. Use
    `npax.linalg.cholesky`, which keeps all. In an objective nothing warns. What only the host can draw, a simulator in
    NumPy say, is called within `sample` by `jax.pure_callback(..., vmap_method="sequential")`, with a seed from the
    key; NumPy's own random numbers would be drawn once, for all tasks.
    """

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray) -> PyTree:
        """One task: a `Task`, or whatever PyTree the objective reads. Shapes are the same at every draw."""
