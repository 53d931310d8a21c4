"""What a model's likelihood has to do with what is observed, and with what is asked."""

import numpy as np

from ..likelihoods import AbstractLikelihood, is_normal, possible, tells_noise
from ..warn import warn


def warn_of_noise(likelihood: AbstractLikelihood, include_noise: bool) -> None:
    """Warns where the noiseless function is asked of a likelihood that does not tell it from new observations."""
    if not (include_noise or tells_noise(likelihood)):
        warn(
            f"`include_noise=False` changes nothing: the likelihood of the model, {type(likelihood).__name__}, does "
            "not tell the noiseless function from noise. Deviations are those of new observations; models with "
            '`npax.likelihoods.FunctionAndNoise` do, such as "gp-universal".'
        )


def warn_of_shape(likelihood: AbstractLikelihood) -> None:
    """Warns where quantiles and probabilities, which are those of normal distributions, are asked of a likelihood that
    is none."""
    if not is_normal(likelihood):
        warn(
            "Quantiles and probabilities are those of a normal distribution with the mean and the standard deviation "
            f"that the model gives; its likelihood, {type(likelihood).__name__}, is another. "
            "`npax.sample(model, ...)` draws from that."
        )


def refuse_impossible(likelihood: AbstractLikelihood, y: np.ndarray) -> None:
    """**Raises** `ValueError` for values `y [n dy]` that cannot be observed: counts that are negative, say."""
    columns = y if y.shape[1] == likelihood.dy else y.reshape(-1, 1)
    if columns.shape[1] == likelihood.dy and not (there := possible(likelihood, columns)).all():
        raise ValueError(
            f"`y` holds values that {type(likelihood).__name__}, the likelihood of the model, cannot observe, such as "
            f"{columns[~there][0].tolist()}. Leave `y` in the unit that the model was trained in, or choose a model of "
            'real numbers, such as "gp-universal".'
        )
