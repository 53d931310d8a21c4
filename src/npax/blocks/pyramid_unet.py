import itertools
from collections.abc import Sequence

import equinox as eqx
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..layers import Linear
from .unet import ConvBlock, double, halve


class PyramidUNet(eqx.Module):
    r"""A U-Net that is told at each of its levels what is known there, of `ConvBlock`s.

    On the way down level $l$ takes the features of the finer one, averaged, and inputs $u_l$ of its own; on the way up
    it adds what the coarser one has found:

    $$h_l = B_l(V_l u_l + D_l \mathrm{halve}(h_{l-1})), \qquad g_l = A_l(h_l + U_l \mathrm{double}(g_{l+1})).$$

    Levels may differ in width: wide where there are few nodes costs little. As in `UNet` the grid is a part of an
    infinite one, and holds deviations from the features of empty space; inputs of empty space are zeros.

    **Arguments:** `sizes`: channels of each level, the finest first; `inputs`: numbers of inputs of all levels but the
    finest, whose features come as they are; `blocks`: before and after the coarser levels, for each level (at the
    coarsest, in all); `hidden`: width of each block's network beside its channels; `window`: of the convolutions.

    **Shapes:** sides are multiples of `stride`.
    """

    embed: tuple[Linear, ...]
    down: tuple[Linear, ...]
    up: tuple[Linear, ...]
    before: tuple[tuple[ConvBlock, ...], ...]
    after: tuple[tuple[ConvBlock, ...], ...]

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        dx: int,
        inputs: int,
        blocks: Sequence[int],
        hidden: int = 2,
        window: int = 5,
        key: PRNGKeyArray,
    ):
        if len(sizes) != len(blocks):
            raise ValueError(f"`sizes` and `blocks` must be as long as each other, got {len(sizes)} and {len(blocks)}.")
        e_key, d_key, u_key, b_key, a_key = jr.split(key, 5)
        pairs = list(itertools.pairwise(sizes))

        def maps(key, shapes):
            keys = jr.split(key, max(len(shapes), 1))
            return tuple(Linear(*shape, use_bias=False, key=k) for shape, k in zip(shapes, keys, strict=False))

        def stacks(key, numbers):
            return tuple(
                tuple(
                    ConvBlock(size, dx=dx, hidden=hidden * size, window=window, key=k)
                    for k in jr.split(jr.fold_in(key, level), number)
                )
                for level, (size, number) in enumerate(zip(sizes, numbers, strict=False))
            )

        self.embed = maps(e_key, [(inputs, size) for size in sizes[1:]])
        self.down = maps(d_key, pairs)
        self.up = maps(u_key, [pair[::-1] for pair in pairs])
        self.before, self.after = stacks(b_key, blocks), stacks(a_key, blocks[:-1])

    @property
    def stride(self) -> int:
        """Nodes of the finest level, along an axis, for one of the coarsest."""
        return 2 ** len(self.down)

    def __call__(
        self,
        deviation: Float[Array, "*side size"],
        rest: Float[Array, " size"],
        inputs: Sequence[Float[Array, "*_ inputs"]],
    ) -> tuple[Float[Array, "*side size"], Float[Array, " size"]]:
        """Features of the finest level, as `ConvBlock` takes and gives them; `inputs` of the coarser ones."""
        kept = []
        for level, blocks in enumerate(self.before):
            if level:
                down, embed = self.down[level - 1], self.embed[level - 1]
                deviation = _each(embed, inputs[level - 1]) + _each(down, halve(deviation))
                rest = down(rest[None])[0]
            for block in blocks:
                deviation, rest = block(deviation, rest)
            kept.append((deviation, rest))
        for up, blocks, (finer, finer_rest) in zip(self.up[::-1], self.after[::-1], kept[-2::-1], strict=True):
            deviation, rest = finer + double(_each(up, deviation)), finer_rest + up(rest[None])[0]
            for block in blocks:
                deviation, rest = block(deviation, rest)
        return deviation, rest


def _each(linear: Linear, h: Float[Array, "*side size"]) -> Float[Array, "*side other"]:
    return linear(h.reshape(-1, h.shape[-1])).reshape(*h.shape[:-1], -1)
