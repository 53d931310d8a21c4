"""Samplers that several CPU devices cannot draw from at once."""

import re

import equinox as eqx
import jax
import jax.random as jr
from jax.sharding import Mesh

from ..devices import first_alone
from ..tasks import Curriculum, Stage
from ..warn import warn
from .program import is_array

_BATCH = re.compile(r"custom_call @(?:lapack|blas)_\w+\(.*tensor<\d+x\d+x\d+x[cf]")
"""In a lowered program, a call that takes a batch of matrices."""


def without_deadlock(mesh: Mesh, curriculum: Curriculum) -> Mesh:
    """The mesh; or its first device alone, with a warning, where these are CPUs of one process and a sampler factorises
    batches of matrices: jaxlib shares a batch among the threads of one pool, and those of two devices can wait for each
    other for ever (`npax.linalg.cholesky`)."""
    cpus = mesh.devices.flat[0].platform == "cpu" and not mesh.is_multi_process
    if mesh.size == 1 or not cpus or not any(map(_factorises_batches, curriculum.stages)):
        return mesh
    warn(
        "`tasks` factorise or solve batches of matrices by `jnp.linalg`, which can hang on several CPU devices: "
        "training uses one of them. Use `npax.linalg.cholesky` and `npax.linalg.solve_lower`, which do not, for all.",
        RuntimeWarning,
    )
    return first_alone(mesh)


def _factorises_batches(stage: Stage) -> bool:
    arrays, rest = eqx.partition(stage.tasks, is_array)

    def draw(arrays, keys):
        return jax.vmap(eqx.combine(arrays, rest).sample)(keys)

    traced = jax.jit(draw).trace(arrays, jr.split(jr.key(0), 2))
    program = traced.lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    assert program is not None
    return _BATCH.search(program.operation.get_asm(large_elements_limit=16)) is not None
