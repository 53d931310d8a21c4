"""Likelihoods: from raw network outputs to NumPyro distributions."""

from ._base import AbstractLikelihood as AbstractLikelihood
from .categorical import Categorical as Categorical, OneHotCategorical as OneHotCategorical
from .gaussian import (
    FunctionAndNoise as FunctionAndNoise,
    HeteroscedasticGaussian as HeteroscedasticGaussian,
    HomoscedasticGaussian as HomoscedasticGaussian,
)
from .joint import JointGaussian as JointGaussian
from .mixture import EqualMixture as EqualMixture, mixture as mixture
from .noisy import (
    NoisyNormal as NoisyNormal,
    log_prob as log_prob,
    marginals as marginals,
    noiseless as noiseless,
)
from .support import (
    is_normal as is_normal,
    of_real_numbers as of_real_numbers,
    possible as possible,
    tells_noise as tells_noise,
)
