import abc
import functools
from types import FunctionType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpyro.distributions import Distribution

from ..alone import compiled_alone
from ..arguments import booleans, whole_number as whole_number, widths as widths
from ..arrays import refuse_complex
from ..blocks import read_memories, write_memories
from ..likelihoods import AbstractLikelihood, HeteroscedasticGaussian

State = Any
"""What a model keeps of its context; a PyTree whose form each model chooses."""


class AbstractNeuralProcess(eqx.Module):
    r"""A map from context sets to predictive distributions, $p(y_t \mid x_t, D_c)$.

    One task, no batch axis: `jax.vmap` (or `eqx.filter_vmap`) does batches, ensembles and seeds. Score and sample
    inside the mapped function and return numbers: a distribution that leaves it still takes its batch for that of one
    task, and would sample the same noise for all.

    A call by itself, on numbers, is one compiled program for each shape of data, and the next one of that shape takes
    milliseconds: `condition` and `decode` of any model, your own too, compile themselves there. Gradients and whatever
    is mapped belong under `jax.jit` (`eqx.filter_jit`): outside, their loops are compiled anew each time.

    The work is split in two so that it is done once: `condition` does all that depends on the context alone, `predict`
    maps any number of targets, each independent of the others. An empty or fully masked context is legal and gives the
    prior.

    Gradients are those of reverse mode (`jax.grad`, and `jax.jacrev` of it for second derivatives); forward mode
    (`jax.jvp`, and so `jax.hessian`) is not there for most.

    Weights and data of 16 bits are taken too (`jax.tree.map` casts a model's arrays); sums over a context are of
    float32 all the same, but those of linear attention, which in float16 overflow beyond 65,504 points.

    A model gives `condition` and `predict`; most do so as an `AbstractConditionalNeuralProcess` or, where one context
    stands for many functions, as an `AbstractLatentNeuralProcess`.
    """

    likelihood: eqx.AbstractVar[AbstractLikelihood]
    dx: eqx.AbstractVar[int]

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in ("condition", "decode"):
            method = vars(cls).get(name)
            if isinstance(method, FunctionType) and not getattr(method, "__isabstractmethod__", False):
                setattr(cls, name, compiled_alone(method))

    @abc.abstractmethod
    def condition(
        self, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], mask: Bool[Array, " nc"] | None = None
    ) -> State:
        """Everything that depends on the context alone. Points where `mask` is `False` count for nothing."""

    @abc.abstractmethod
    def predict(self, state: State, xt: Float[Array, "nt dx"]) -> Distribution:
        """The predictive distribution at each target: batch shape `[nt]`, event shape `[dy]`."""

    def __call__(
        self,
        xc: Float[Array, "nc dx"],
        yc: Float[Array, "nc dy"],
        xt: Float[Array, "nt dx"],
        mask: Bool[Array, " nc"] | None = None,
        error: Float[Array, "nc dy"] | None = None,
    ) -> Distribution:
        """`predict(condition(xc, yc, mask), xt)`; `error`: known standard errors of `yc`, for models that take them,
        `condition(xc, yc, mask, error)`."""
        check_points(self, xc, yc, mask, "c")
        return self.predict(condition_on(self, xc, yc, mask, error), xt)


class AbstractConditionalNeuralProcess(AbstractNeuralProcess):
    """A neural process that maps the state and a target straight to the numbers that its likelihood reads."""

    @abc.abstractmethod
    def decode(self, state: State, xt: Float[Array, "nt dx"]) -> Float[Array, "nt size"]:
        """The raw numbers that the likelihood turns into a distribution at each target."""

    def predict(self, state, xt):
        return self.likelihood(self.decode(state, places(self, state, xt)))


class AbstractTokenStack(AbstractConditionalNeuralProcess):
    """A neural process whose context is a token for each observation, which pass through a stack of blocks (`KRBlock`,
    `TransformerBlock`): its state is what targets read at each depth."""

    stack: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def context_tokens(
        self, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], error: Float[Array, "nc dy"] | None = None
    ) -> Float[Array, "nc size"]:
        """What enters the first block."""

    @abc.abstractmethod
    def target_tokens(self, xt: Float[Array, "nt dx"]) -> Float[Array, "nt size"]:
        """What enters it of targets."""

    @abc.abstractmethod
    def finish(self, zt: Float[Array, "nt size"]) -> Float[Array, "nt size_out"]:
        """What the likelihood reads, of target tokens that have passed all blocks."""

    def entering(
        self,
        xc: Float[Array, "nc dx"],
        yc: Float[Array, "nc dy"],
        mask: Bool[Array, " nc"] | None = None,
        error: Float[Array, "nc dy"] | None = None,
    ) -> tuple[Float[Array, "nc size"], Float[Array, "nc dx"], Bool[Array, " nc"]]:
        """Tokens, locations and mask of a context, as `write_memories` takes them."""
        return self._entering(xc, yc, mask, error)

    def _entering(self, xc, yc, mask, error):
        check_error(self, error, yc)
        xc, yc, mask = clean(self, xc, yc, mask)
        if error is not None:
            error = jnp.where(mask[:, None], floats((self, xc), error)[0], 0.0)
        return self.context_tokens(xc, yc, error), xc, mask

    def condition(self, xc, yc, mask=None, error=None):
        return write_memories(self.stack, *self._entering(xc, yc, mask, error))

    def decode(self, state, xt):
        return self.finish(read_memories(self.stack, state, self.target_tokens(xt), xt))


def hears_errors(model: AbstractNeuralProcess) -> bool:
    """Whether `condition` takes known standard errors of the context's values (see `TNPKR`)."""
    return getattr(model, "errors", False)


def condition_on(
    model: AbstractNeuralProcess,
    xc: Float[Array, "nc dx"],
    yc: Float[Array, "nc dy"],
    mask: Bool[Array, " nc"] | None = None,
    error: Float[Array, "nc dy"] | None = None,
) -> State:
    """The state of any model; `error`, known standard errors, are for those that take them."""
    if error is None:
        return model.condition(xc, yc, mask)
    check_error(model, error, yc)
    return model.condition(xc, yc, mask, error)  # pyright: ignore[reportCallIssue]


def check_error(model: AbstractNeuralProcess, error: Any, y: Any) -> None:
    """**Raises** `ValueError` for standard errors that a model does not take, or of another shape than `y`."""
    if error is None:
        return
    if not hears_errors(model):
        raise ValueError(
            f"`error` holds known standard errors, and this {type(model).__name__} was not made for any. Leave "
            "them out, or choose the pretrained gp-universal, or a `TNPKR` that is made with `errors=True`."
        )
    if np.shape(error) != np.shape(y):
        raise ValueError(f"`error` must have the shape of the values, {[*np.shape(y)]}; got {[*np.shape(error)]}.")


def check_places(model: AbstractNeuralProcess, x: Any, name: str) -> None:
    """**Raises** `ValueError` for locations that are not `[n dx]`."""
    if np.ndim(x) != 2 or np.shape(x)[1] != model.dx:
        raise ValueError(
            f"`{name}` must have the shape [n, {model.dx}], a row for each point and the columns that the model was "
            f"made for; got {[*np.shape(x)]}. Batches are `jax.vmap`; missing coordinates are zeros."
        )


def gaussian_unless(likelihood: AbstractLikelihood | None, dy: int) -> AbstractLikelihood:
    """A model's likelihood, `HeteroscedasticGaussian(dy)` where none is given. **Raises** `ValueError` for one of
    another number of columns."""
    if likelihood is None:
        return HeteroscedasticGaussian(dy)
    if not isinstance(likelihood, AbstractLikelihood):
        rule = f"`likelihood` must be one of npax.likelihoods, such as `HeteroscedasticGaussian({dy})`"
        raise TypeError(f"{rule}; got {likelihood!r}.")
    if likelihood.dy != dy:
        raise ValueError(f"The `likelihood` predicts {likelihood.dy} columns and `dy` is {dy}: make both the same.")
    return likelihood


def places(model: AbstractNeuralProcess, state: State, xt: Any) -> Float[Array, "nt dx"]:
    """Targets as the model computes with them. **Raises** as `check_places`."""
    check_places(model, xt, "xt")
    return floats((model, state), xt)[0]


def clean(model, x, y, mask, of="c"):
    """The context (or the targets, `of="t"`) with zeros under the mask, and a mask where none was given."""
    check_points(model, x, y, mask, of)
    x, y = floats(model, x, y)
    if mask is None:
        return x, y, jnp.ones(x.shape[0], bool)
    mask = jnp.asarray(mask)
    return jnp.where(mask[:, None], x, 0.0), jnp.where(mask[:, None], y, 0.0), mask


def floats(beside, *arrays):
    """All of one precision, at least that of what they meet: weights, a state. Whole numbers too, lest a grid be laid
    out in whole steps."""
    arrays = [jnp.asarray(a) for a in arrays]
    refuse_complex(*arrays)
    dtypes = [a.dtype if jnp.issubdtype(a.dtype, jnp.inexact) else jnp.dtype(jnp.float32) for a in arrays]
    met = {leaf.dtype for leaf in jax.tree.leaves(beside) if eqx.is_inexact_array(leaf)}
    with jax.numpy_dtype_promotion("standard"):
        common = functools.reduce(jnp.promote_types, met, functools.reduce(jnp.promote_types, dtypes))
    return [a.astype(common) for a in arrays]


def check_points(model: AbstractNeuralProcess, x: Any, y: Any, mask: Any, of: str) -> None:
    """**Raises** `ValueError` for a context (or targets) whose shapes are not `[n dx]`, `[n dy]` and `[n]`; `TypeError`
    for a mask of something else than booleans."""
    check_places(model, x, f"x{of}")
    n = jnp.shape(x)[0]  # may be a symbol, in exported programs
    if jnp.shape(y) != (n, model.likelihood.dy):
        raise ValueError(
            f"`y{of}` must have the shape [{n}, {model.likelihood.dy}], a row for each of `x{of}` and the columns "
            f"that the model predicts; got {[*jnp.shape(y)]}."
        )
    check_mask(mask, x, of)


def check_mask(mask: Any, x: Any, of: str) -> None:
    """**Raises** `ValueError` for a mask that is not as long as `x`, `TypeError` for one of something else than
    booleans."""
    if mask is None:
        return
    if jnp.shape(mask) != jnp.shape(x)[:1]:
        rule = f"`mask` must have the shape [{jnp.shape(x)[0]}], as long as `x{of}`"
        raise ValueError(f"{rule}; got {[*jnp.shape(mask)]}.")
    booleans(mask=mask)


def check_picture(model: AbstractNeuralProcess, y: Any, mask: Any) -> None:
    """**Raises** `ValueError` for a picture whose shapes are not `[*side dy]` and `[*side]`; `TypeError` for a mask of
    something else than booleans."""
    if jnp.ndim(y) != model.dx + 1 or jnp.shape(y)[-1] != model.likelihood.dy:
        rule = (
            f"`y` must have the sides of the picture, {model.dx}, and then the {model.likelihood.dy} columns that the "
        )
        raise ValueError(f"{rule}model predicts; got the shape {[*jnp.shape(y)]}.")
    if jnp.shape(mask) != jnp.shape(y)[:-1]:
        raise ValueError(f"`mask` must have the sides of `y`, {[*jnp.shape(y)[:-1]]}; got {[*jnp.shape(mask)]}.")
    booleans(mask=mask)


def context_features(xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"]) -> Float[Array, "nc dx+dy+1"]:
    """What the transformers embed of an observation, $[x, y, 1]$: with a flag, as TE has it for its TNP (appendix
    F.1); TNP's own are $[x, y]$ and $[x, 0]$."""
    return jnp.concatenate([xc, yc, jnp.ones((xc.shape[0], 1), xc.dtype)], axis=-1)


def target_features(xt: Float[Array, "nt dx"], dy: int) -> Float[Array, "nt dx+{dy}+1"]:
    """What they embed of a target, $[x, 0, 0]$."""
    return jnp.concatenate([xt, jnp.zeros((xt.shape[0], dy + 1), xt.dtype)], axis=-1)
