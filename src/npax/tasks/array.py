import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PyTree

from ._base import AbstractTasks


class ArrayTask(AbstractTasks):
    """Tasks that are at hand as arrays: every draw is one of them, all alike probable.

    **Arguments:** `tasks`: a `Task` (or another PyTree that the objective reads) whose arrays have a leading axis
    over tasks. **Raises:** `ValueError` where there is none, or where their number is not the same in all arrays.
    """

    tasks: PyTree

    def __check_init__(self):
        numbers = {jnp.shape(a)[0] if jnp.ndim(a) else 0 for a in jax.tree.leaves(self.tasks)}
        if len(numbers) != 1 or numbers == {0}:
            raise ValueError(
                f"`tasks` must hold arrays with one leading axis over tasks, at least one task; got {sorted(numbers)}."
            )

    def __len__(self) -> int:
        return jax.tree.leaves(self.tasks)[0].shape[0]

    def sample(self, key):
        i = jr.randint(key, (), 0, len(self))
        return jax.tree.map(lambda a: jnp.asarray(a)[i], self.tasks)
