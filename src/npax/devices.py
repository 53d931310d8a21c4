"""Several devices: a mesh of one axis, what is copied to all of it, and what is split along it."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import broadcast_one_to_all
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from .compiled import keep_compiled_programs as keep_compiled_programs

T = TypeVar("T")
AXIS = "devices"
WORKERS = 8
"""Threads at most."""


def one_device_per_core() -> None:
    """Makes each CPU core a device of JAX, unless JAX runs already or the environment says how many there shall be.

    `fit` then gives each core tasks of its own: a step of batch 32 with a light optimiser takes a sixth less time on
    two cores than with every single operation shared among them, as JAX does otherwise. What the optimiser does each
    device repeats: with small batches Muon takes back the gain. Where there is a GPU it changes nothing.

    **Pitfalls:** tasks and objectives of your own that factorise matrices need `npax.linalg`, or `fit` uses one device.
    """
    if "JAX_NUM_CPU_DEVICES" in os.environ or "host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    with contextlib.suppress(RuntimeError):  # JAX runs already
        jax.config.update("jax_num_cpu_devices", cores())


def cores() -> int:
    """The CPU cores that this process may use, by its affinity and by the quota of its container."""
    from joblib import cpu_count  # here, since it takes a fifth of a second

    return cpu_count()


def cores_each(mesh: Mesh) -> int:
    """The CPU cores that each device of a mesh has for its arithmetic, in this process; one where they are no CPUs."""
    return max(1, cores() // len(mesh.local_devices)) if mesh.devices.flat[0].platform == "cpu" else 1


def local_mesh() -> Mesh:
    """The devices of this process; or the one that `jax.default_device` names, where it does."""
    return _mesh(_unless_one_is_named(jax.local_devices))


def on_first(tree: T, mesh: Mesh) -> T:
    """`tree` with its arrays committed to the first device of a mesh: what is computed with them is computed there."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, mesh.devices.flat[0]), rest)


def global_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:  # pyright: ignore[reportInvalidTypeForm]
    """The devices given, or those of all processes; or the one that `jax.default_device` names, where it does.

    **Raises:** `TypeError` for something else than devices; `ValueError` where none of them is this process's own, or
    they belong to several processes but not all.
    """
    if isinstance(devices, jax.Device):
        raise TypeError(f"`devices` must be a list of JAX's devices: write [{devices}].")
    devices = list(_unless_one_is_named(jax.devices) if devices is None else devices)
    if not all(isinstance(device, jax.Device) for device in devices):
        raise TypeError(f"`devices` must be a list of JAX's devices, such as `jax.devices('cpu')`; got {devices}.")
    owners = {device.process_index for device in devices}
    if jax.process_index() not in owners or len(owners) not in (1, jax.process_count()):
        raise ValueError(
            f"`devices` must be some of this process's, `jax.local_devices()`, or of all processes; got {devices}."
        )
    return _mesh(devices)


def is_first(mesh: Mesh) -> bool:
    """Whether this process owns the first device of the mesh: it alone reports, and keeps files, for all."""
    return mesh.devices.flat[0].process_index == jax.process_index()


@contextlib.contextmanager
def first_for_all(mesh: Mesh) -> Iterator[None]:
    """For what the first process alone may fail at: then all raise, and none waits for the others for ever."""
    error = None
    try:
        yield
    except Exception as found:
        error = found
    failed = error is not None
    if mesh.is_multi_process:
        failed = bool(broadcast_one_to_all(np.int32(failed), is_source=is_first(mesh)))
    if error is not None:
        raise error
    if failed:
        raise RuntimeError("The first process failed, and its error says why: this one ends with it.")


def everywhere(tree: T, mesh: Mesh) -> T:
    """`tree` with its arrays copied to all devices of a mesh; over several processes, what the first of them holds."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    if not mesh.is_multi_process:
        return eqx.combine(jax.device_put(arrays, NamedSharding(mesh, P())), rest)
    everyone = NamedSharding(mesh, P())
    found = broadcast_one_to_all(jax.tree.map(numbers, arrays), is_source=is_first(mesh))
    copied = jax.tree.map(lambda a: jax.make_array_from_callback(np.shape(a), everyone, lambda i: a[i]), found)
    return eqx.combine(jax.tree.map(alike, copied, arrays), rest)


def here(tree: T) -> T:
    """`tree` with this process's own copies of arrays that are `everywhere`, on its default device."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda a: alike(jax.device_put(on_host(a)), a), arrays), rest)


def numbers(a: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    """An array as it is; of random keys, their numbers."""
    return jax.random.key_data(a) if _is_key(a) else a


def on_host(a: jax.Array | np.ndarray) -> np.ndarray:
    """An array as one of NumPy's; of random keys, their numbers."""
    return np.asarray(numbers(a))


def alike(a: jax.Array, like: jax.Array | np.ndarray) -> jax.Array:
    """An array as it is; as random keys, where `like` are some."""
    return jax.random.wrap_key_data(a, impl=jax.random.key_impl(like)) if _is_key(like) else a


def _is_key(a):
    return jnp.issubdtype(a.dtype, jax.dtypes.prng_key)


def as_here(function: Callable[..., T]) -> Callable[..., T]:
    """`function` for other threads, which do not hear of this one's `jax.default_device`,
    `jax.default_matmul_precision`, `jax.enable_x64` and `jax.numpy_dtype_promotion`."""
    config: Any = jax.config
    device, precision = config.jax_default_device, config.jax_default_matmul_precision
    wide, promotion = config.jax_enable_x64, config.jax_numpy_dtype_promotion

    def told(*args):
        with (
            jax.default_device(device),
            jax.default_matmul_precision(precision),
            jax.enable_x64(wide),
            jax.numpy_dtype_promotion(promotion),
        ):
            return function(*args)

    return told


def in_threads(function: Callable[..., T], items: Iterable[Any]) -> Iterator[T]:
    """`map(function, items)`, some of them side by side: small programs do not fill several cores."""
    with ThreadPoolExecutor(min(cores(), WORKERS)) as pool:
        yield from pool.map(as_here(function), items)


def first_compiles(function: Callable[..., T], items: Sequence[Any] | np.ndarray) -> Iterator[T]:
    """`in_threads`, the first of the items alone: it compiles what the others need."""
    if len(items):
        yield function(items[0])
        yield from in_threads(function, items[1:])


def split(function: Callable, mesh: Mesh, axis: int = 0) -> Callable:
    """`function(shared, parts)` with the first axis of the arrays in `parts`, and `axis` of those that it returns,
    split evenly over a mesh: each device answers its part, without hearing from the others. On one device it is
    `function` itself."""
    if mesh.size == 1:
        return function

    def on_all(shared, parts):
        arrays, rest = eqx.partition(shared, eqx.is_array)
        return jax.shard_map(
            lambda arrays, parts: function(eqx.combine(arrays, rest), parts),
            mesh=mesh,
            in_specs=(P(), P(AXIS)),
            out_specs=P(*[None] * axis, AXIS),
            check_vma=False,
        )(arrays, parts)

    return on_all


def first_alone(mesh: Mesh) -> Mesh:
    """The first device of a mesh, as a mesh."""
    return _mesh([mesh.devices.flat[0]])


def _mesh(devices):
    return Mesh(np.array(devices), (AXIS,))


def _unless_one_is_named(devices):
    named = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if named is None:
        return devices()
    return devices(backend=named) if isinstance(named, str) else [named]
