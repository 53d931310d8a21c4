"""What may be standardised: where any real number can be observed."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from npax.likelihoods import (
    AbstractLikelihood,
    Categorical,
    FunctionAndNoise,
    HeteroscedasticGaussian,
    HomoscedasticGaussian,
    JointGaussian,
    of_real_numbers,
    possible,
    tells_noise,
)


class Own(AbstractLikelihood):
    """One parameter for each column."""

    dy: int = 2
    kind: type = dist.Poisson

    @property
    def size(self):
        return self.dy

    def __call__(self, raw):
        parameters = {
            dist.Poisson: (jnp.exp(raw),),
            dist.Beta: (jnp.exp(raw), jnp.exp(raw)),
            dist.LogNormal: (raw, 1.0),
            dist.StudentT: (4.0, raw, 1.0),
            dist.Laplace: (raw, 1.0),
        }
        return self.kind(*parameters[self.kind]).to_event(1)


@pytest.mark.parametrize(
    "likelihood",
    [
        HeteroscedasticGaussian(2),
        HomoscedasticGaussian(1),
        FunctionAndNoise(1),
        JointGaussian(2),
        Own(kind=dist.StudentT),
        Own(kind=dist.Laplace),
    ],
)
def test_real_numbers_may_be_shifted_and_scaled(likelihood):
    assert of_real_numbers(likelihood)


def test_function_and_noise_are_told_apart_by_one_likelihood():
    others = HeteroscedasticGaussian(2), HomoscedasticGaussian(1), Categorical(3), Own(kind=dist.Poisson)
    assert tells_noise(FunctionAndNoise(1)) and not any(map(tells_noise, others))


def test_what_can_be_observed():
    y = np.array([[0.0, 3.0], [1.0, -1.0], [0.5, 2.0], [7.0, np.nan]])
    assert possible(Own(kind=dist.Poisson), y).tolist() == [True, False, False, False]
    assert possible(Own(kind=dist.LogNormal), y).tolist() == [False, False, True, False]
    assert possible(HeteroscedasticGaussian(2), y).tolist() == [True, True, True, False]
    classes = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.2, 0.3, 0.5]])
    assert possible(Categorical(3), classes).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "likelihood", [Categorical(3), Own(kind=dist.Poisson), Own(kind=dist.Beta), Own(kind=dist.LogNormal)]
)
def test_classes_counts_shares_and_amounts_may_not(likelihood):
    assert not of_real_numbers(likelihood)


@pytest.mark.parametrize("classes", [3, 10, 20])
def test_shares_of_classes_may_be_rounded(classes):
    shares = np.random.default_rng(0).dirichlet(np.ones(classes), 300)
    assert possible(Categorical(classes), shares).all() and possible(Categorical(classes), np.eye(classes)).all()
    assert not possible(Categorical(classes), np.r_[1.01 * shares, -np.eye(classes)]).any()


def test_a_likelihood_is_asked_once():
    asked = []

    class Asked(Own):
        def __call__(self, raw):
            asked.append(raw)
            return dist.Normal(raw).to_event(1)

    assert of_real_numbers(Asked()) and of_real_numbers(Asked()) and len(asked) == 1
    assert of_real_numbers(Asked(dy=3)) and len(asked) == 2
    assert not of_real_numbers(Own()) and of_real_numbers(Own(kind=dist.Laplace))
