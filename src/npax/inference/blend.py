"""Answers of several cells to the same targets, as one."""

import numpy as np
from jaxtyping import Bool, Float, Int

from .predict import Prediction


class Blend:
    """The mixtures of the answers that `n` targets get, `blend.add(...)` by `blend.add(...)`.

    Moments are summed about the first answer to a target: about zero they would cancel where the field is far from zero
    beside its own standard deviation.
    """

    def __init__(self, n: int, dy: int):
        self.first = np.zeros((n, dy))
        self.sums = np.zeros((n, 4, dy))

    def add(
        self,
        targets: Int[np.ndarray, "*batch"],
        shares: Float[np.ndarray, "*batch"],
        answers: Prediction,
        present: Bool[np.ndarray, "*batch"],
    ) -> None:
        """`answers [*batch dy]` to the targets with these indices, of these shares; none that is not `present`."""
        new = present & (self.sums[targets, 0, 0] == 0)
        self.first[targets[new]] = answers.mean[new]
        away = answers.mean - self.first[targets]
        moments = (np.ones_like(away), away, answers.variance + away**2, answers.function_variance + away**2)
        shares = np.where(present, shares, 0.0)[..., None]
        np.add.at(self.sums, targets, np.stack([shares * moment for moment in moments], axis=-2))

    def moments(self) -> Float[np.ndarray, "3 n dy"]:
        """Mean, variance and variance of the function of each mixture; every target must have got an answer."""
        weight, away, *seconds = np.moveaxis(self.sums, 1, 0)
        away = away / weight
        return np.stack([self.first + away, *(np.maximum(second / weight - away**2, 0.0) for second in seconds)])
