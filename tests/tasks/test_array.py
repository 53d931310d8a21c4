import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from npax.tasks import ArrayTask


def test_every_task_comes_up_as_often_as_the_others():
    tasks = ArrayTask({"a": jnp.arange(5), "b": jnp.arange(10).reshape(5, 2)})
    drawn = jax.tree.map(np.asarray, jax.jit(jax.vmap(tasks.sample))(jr.split(jr.key(0), 5000)))
    assert (drawn["b"][:, 0] == 2 * drawn["a"]).all()
    assert np.abs(np.bincount(drawn["a"], minlength=5) / 1000 - 1).max() < 0.15


@pytest.mark.parametrize(
    "tasks", [{}, {"a": jnp.zeros((0, 2))}, {"a": jnp.zeros(())}, {"a": jnp.zeros(2), "b": jnp.zeros(3)}]
)
def test_tasks_without_one_axis_are_refused(tasks):
    with pytest.raises(ValueError, match="one leading axis over tasks"):
        ArrayTask(tasks)


def test_arrays_of_numpy_are_tasks_too():
    arrays = np.arange(3.0, dtype=np.float32)[:, None, None]
    tasks = ArrayTask({"x": arrays, "y": 2 * arrays})
    drawn = jax.vmap(tasks.sample)(jr.split(jr.key(0), 5))
    assert (drawn["y"] == 2 * drawn["x"]).all()
