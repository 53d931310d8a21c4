"""The search for the minimum of an expensive function, one question at a time."""

import copy
import itertools

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.stats
from scipy.optimize import OptimizeResult

from ..arguments import whole_number
from ..inference.buckets import pad, wide_bucket
from ..metrics._check import check_order
from ..models._base import check_error
from ..warn import warn
from .acquisition import AbstractAcquisition, RandomSearch, acquisition as acquisition_named
from .checks import as_model, checked_box, coordinates, numbers
from .record import Foreseen, Record
from .scale import Scale
from .surrogate import Evaluations, ModelSurrogate, RescaledSurrogate
from .units import Units

CANDIDATES = 512
"""Candidates of each round, from all over the box and from around the best places."""
ROUNDS = 3
"""Of candidates; those after the first lie around the most promising ones so far."""
CENTRES = 8
"""Places that candidates lie around."""
REACH = (1e-4, 0.3)
"""Least and greatest distance of such candidates, in sides of the box: drawn log-uniformly."""
NEAREST, SMALLEST = 7, 1e-3
"""Evaluations that a closer look at the best takes in, at least, and half of the shortest stretch that it looks at, in
sides of the box."""


class FailedEvaluation(UserWarning):
    """The function had no finite value somewhere."""


class Optimizer:
    """Bayesian optimisation by questions and answers: `ask` says where to evaluate next, `tell` takes the value.

        opt = npax.bayesopt.Optimizer([(-5, 10), (0, 15)], random_state=0)
        for _ in range(30):
            x = opt.ask()
            opt.tell(x, experiment(x))
        opt.result().x

    The first `n_init` questions are quasi-random (Sobol). After them a pretrained neural process is conditioned on
    all values, and the candidate of greatest promise is asked for; nothing is trained. Values may be noisy: the model
    infers the noise.

    - Several questions may be open at once (parallel workers): until it is answered, a question counts for the model
      as answered by what it predicts there, so that the next one goes elsewhere.
    - A value answers the open question at its place, up to rounding to float32. Where the experiment was made
      elsewhere, or never will be, `forget` the question.
    - Where standard errors of values are known (of averages of few and many, of simulations of several lengths) they
      are told with them, `opt.tell(x, y, error=se)`, and the model believes each value accordingly.
    - What was evaluated before can be told without having been asked; it counts towards `n_init`.
    - An evaluation that failed is told as NaN: it is left out of the result with a `FailedEvaluation` warning, and
      the model is given the worst value there.
    - Where the function varies faster along one coordinate than along another, the values say so, and the model sees
      coordinates in which it varies alike (`npax.inference.anisotropy`).
    - While all values are the same the questions stay quasi-random.
    - Along a line every second question is put between the nearest evaluations around the lowest value: the model sees
      them as large as the whole otherwise, and resolves more.
    - What the model foresees of each answer is compared with it, and how certain the model is taken to be follows from
      that (`record.Record`).
    - Everything is plain data: an optimizer can be pickled between questions.
    - `result` has the best value that was told, `recommend` the place and the value that the model takes for the best.

    **Arguments:**

    - `bounds`: `(low, high)` of each coordinate, finite, or a `scipy.optimize.Bounds`; as many coordinates as the
      model takes (the pretrained ones 3).
    - `integrality`: which coordinates are whole numbers (`[False, True]`; one for all), as SciPy's
      `differential_evolution` has it. No place is asked for twice while there are others.
    - `n_init`: values told and questions open before the model is used; it needs one value at least.
    - `acquisition`: `"ei"`, `"ucb"`, `"thompson"` or an acquisition object of `npax.bayesopt`.
    - `model`: the name of a pretrained model, the path of a saved one, the model itself or a
      `NeuralProcessRegressor`, whose model is used, as fine-tuned in its `fit`. It predicts one column of `y`.
    - `random_state`: a seed, or a generator of NumPy's, old or new; the same seed asks the same questions.

    **Cost** of a question: the model on 64 evaluations (256, 1,024, ... where there are more) and 512 candidates,
    three times. **Pitfalls:** a coordinate that spans orders of magnitude should be given as its logarithm.
    """

    def __init__(
        self,
        bounds,
        *,
        integrality=None,
        n_init: int = 10,
        acquisition: str | AbstractAcquisition = "ei",
        model="gp-universal",
        random_state=None,
    ):
        self.box = checked_box(bounds, integrality)
        d = len(self.box.low)
        whole_number(1, n_init=n_init)
        if isinstance(random_state, np.random.RandomState):  # as scikit-learn has them
            random_state = random_state.randint(np.iinfo(np.int32).max)
        self.n_init = n_init
        self.acquisition = acquisition_named(acquisition) if isinstance(acquisition, str) else acquisition
        if not isinstance(self.acquisition, AbstractAcquisition):
            raise TypeError(f"`acquisition` must be a name or an acquisition object, got {acquisition!r}.")
        self.surrogate = ModelSurrogate(as_model(model))
        if d > self.surrogate.model.dx:
            raise ValueError(f"The model takes up to {self.surrogate.model.dx} coordinates, got {d} pairs in `bounds`.")
        try:
            self._rng = np.random.default_rng(random_state)
        except (TypeError, ValueError) as error:
            rule = "`random_state` must be a whole number from 0 on, a generator of NumPy's or None"
            raise type(error)(f"{rule}; got {random_state!r}.") from error
        self._design = scipy.stats.qmc.Sobol(d, rng=self._rng)
        self._told: list[tuple[np.ndarray, float, float]] = []
        self._has_errors = False
        self._open: list[np.ndarray] = []
        self._foreseen: list[Foreseen | None] = []  # of each open question, where the model has chosen the place
        self._record, self._same = Record(), self.box.same
        self._units: Units | None = None
        self.used = False
        """Whether the model has chosen a place yet."""

    def ask(self) -> np.ndarray:
        """Where to evaluate next: `[d]`."""
        known = sum(np.isfinite(y) for _, y, _ in self._told)
        by_chance = isinstance(self.acquisition, RandomSearch)
        few = known == 0 or len(self._told) + len(self._open) < self.n_init
        if by_chance or few or self._flat():
            x = self._drawn()
        else:
            x, self.used = self.box.places(self._next()), True
        self._foreseen.append(self._foresee(self.box.cube(x)) if self.used else None)
        self._open.append(x)
        return x.copy()

    def tell(self, x, y, *, error=None) -> None:
        """The value `y` of the function at `x [d]`, asked for or not; or many, `y [n]` at `x [n d]`.

        `error`: the standard error of the value where it is known, one for all values or one for each, zero where the
        noise is unknown. It needs a model that takes errors, as gp-universal does.

        One value at another place answers the one open question, if there is one only. Of several open ones answer each
        at its own place.

        **Raises:** `ValueError` for places outside the bounds (by more than rounding), for shapes that do not fit and
        for an `error` that is no standard deviation or that the model does not take; `TypeError` for values that
        are not numbers.
        """
        check_order(y=y, error=error)
        y = numbers(y)
        x = coordinates(x)
        d = len(self.box.low)
        if x.shape != (*y.shape, d) and not (x.shape == (d,) and y.size == 1):
            raise ValueError(
                f"`x` must have the shape {(*y.shape, d)} for values `y` of shape {y.shape}, got {x.shape}."
            )
        x, y = x.reshape(-1, d), y.reshape(-1)
        errors = self._errors(y, error)
        inside = self.box.inside(x)
        self._has_errors |= error is not None
        self._units = None
        for place, value, of_value in zip(inside, y, errors, strict=True):
            self._told.append((place, float(value), float(of_value)))
            question = self._question(place)
            if question is None and len(y) == len(self._open) == 1:
                self._open.clear()
                self._foreseen.clear()
            elif question is not None and (foreseen := self._close(question)) is not None:
                self._record.add(foreseen, float(value), float(of_value))
        failed = ~np.isfinite(y)
        if failed.any():
            lost = f"{failed.sum()} of {y.size} values NaN or infinite, first at x = {x[failed][0]}"
            warn(f"{lost}; left out of the result.", FailedEvaluation)

    def forget(self, x) -> None:
        """Takes back the open question at `x [d]`: it will not be answered. **Raises** `ValueError` where none is."""
        x = coordinates(x)
        if x.shape != self.box.low.shape:
            raise ValueError(f"`x` must have the shape {self.box.low.shape}, got {x.shape}.")
        question = self._question(x)
        if question is None:
            raise ValueError(f"There is no open question at x = {x}; there are {len(self._open)}: {self._open}.")
        self._close(question)

    def result(self, message: str = "", success: bool = True) -> OptimizeResult:
        """What is known so far, as SciPy says it.

        `x [d]` and `fun`: the lowest value seen and its place (NaN where there is none yet); `x_iters [n d]` and
        `func_vals [n]`: all finite values in order; `nfev`: values told, failed ones included.
        """
        x_iters = np.array([x for x, y, _ in self._told if np.isfinite(y)]).reshape(-1, len(self.box.low))
        func_vals = np.array([y for _, y, _ in self._told if np.isfinite(y)])
        x, fun = np.full(len(self.box.low), np.nan), np.nan
        if len(func_vals):
            x, fun = x_iters[func_vals.argmin()], float(func_vals.min())
        elif not message:
            message = "No evaluation had a finite value." if self._told else "No value was told yet."
        return OptimizeResult(
            x=x,
            fun=fun,
            x_iters=x_iters,
            func_vals=func_vals,
            nfev=len(self._told),
            success=success and len(func_vals) > 0,
            message=message,
        )

    def recommend(self) -> tuple[np.ndarray, float]:
        """The evaluated place `x [d]` where the model believes the noiseless function to be lowest, and its median.

        With a noisy function a better answer than the place of the lowest value, which is partly luck.
        """
        known = np.array([np.isfinite(y) for _, y, _ in self._told], bool)
        if not known.any():
            raise ValueError("There is nothing to recommend: no evaluation had a finite value.")
        seen, scale, _ = self._seen([])
        mean = np.asarray(_means(self.surrogate, seen, seen.x), np.float64)[: len(known)]
        lowest = np.where(known, mean, np.inf).argmin()
        return self._told[lowest][0].copy(), float(scale.undo(mean[lowest]))

    def _errors(self, y, error):
        """Known standard errors of the values `y [n]`, zeros where none are told or where evaluations failed."""
        if error is None:
            return np.zeros(len(y))
        from ..estimators.known_errors import like  # here, since it imports scikit-learn

        errors = like(y, error)
        check_error(self.surrogate.model, errors, y)
        return np.where(np.isfinite(y), errors, 0.0)

    def _question(self, x):
        """The number of the open question nearest to `x`, if that is its place; or None."""
        away = [np.max(np.abs(other - x) / self.box.rounding) for other in self._open]
        return None if not away or min(away) > 1 else int(np.argmin(away))

    def _close(self, question):
        """Takes an open question off the list, and gives what was foreseen there, if anything."""
        del self._open[question]
        return self._foreseen.pop(question)

    def _foresee(self, place):
        """What the model predicts of the value at a place in the unit cube, before it is known."""
        seen, scale, units = self._seen(self._open)
        mean, std, share = map(float, _foreseen(self.surrogate, seen, jnp.asarray(units(place[None]))))
        return Foreseen(mean, std, share, scale)

    def _flat(self):
        """Whether all values are the same, of which nothing is to be learned but to look elsewhere."""
        values = np.array([y for _, y, _ in self._told if np.isfinite(y)])
        return (values == values[0]).all()

    def _drawn(self):
        """The next of the quasi-random places that was not asked for, nor told from before, if that is soon found."""
        x = self.box.places(self._design.random(1)[0])
        for _ in range(CANDIDATES):
            if not self._asked(self.box.cube(x)[None])[0]:
                break
            x = self.box.places(self._design.random(1)[0])
        return x

    def _next(self):
        """The most promising place in the unit cube; along a line in turn of the whole, and of what lies around the
        best: in more dimensions that gains nothing for sure, and loses where there is noise."""
        number = len(self._told) + len(self._open)
        one = len(self.box.low) == 1 and not self.box.whole.any()
        closer = self._closer() if one and number % 2 == 0 else None
        if closer is None:
            return self._most_promising()
        return self.box.cube(closer.box.places(closer._most_promising()))

    def _closer(self):
        """The search between the nearest evaluations around the lowest value; None of too few."""
        x, y = np.array([x for x, *_ in self._told]), np.array([y for _, y, _ in self._told])
        if np.isfinite(y).sum() < NEAREST:
            return None
        best, side = x[np.argmin(np.where(np.isfinite(y), y, np.inf))], self.box.high - self.box.low
        half = np.maximum(np.sort(np.abs(x - best), axis=0)[NEAREST - 1], SMALLEST * side)
        closer = copy.copy(self)
        closer.box = self.box.near(best, half)
        closer._told = [told for told in self._told if closer.box.holds(told[0])]
        closer._open = [x for x in self._open if closer.box.holds(x)]
        closer._units, closer._same = None, self._same * side / (closer.box.high - closer.box.low)
        return closer

    def _most_promising(self):
        """The place in the unit cube that promises most, after a few rounds of candidates."""
        seen, _, units = self._seen(self._open)
        belief = RescaledSurrogate(self.surrogate, jnp.asarray(self._record.factor, jnp.float32))
        key = jr.key(self._rng.integers(2**31))
        n = int(seen.mask.sum())
        best = np.argsort(np.asarray(seen.y)[:n], kind="stable")[:CENTRES]
        anywhere = scipy.stats.qmc.Sobol(len(self.box.low), rng=self._rng).random(CANDIDATES // 2)
        places = np.concatenate([anywhere, self._around(units.undo(np.asarray(seen.x)[best]), CANDIDATES // 2)])
        kept, promises = places[:0], np.zeros(0)
        for _ in range(ROUNDS):
            if self.box.whole.any():
                places = self.box.cube(self.box.places(places))
            found = np.asarray(_promises(self.acquisition, belief, seen, jnp.asarray(units(places)), key))
            found = np.where(self._asked(places), -np.inf, found)  # the very corner of the box, for one, was asked for
            kept, promises = np.concatenate([kept, places]), np.concatenate([promises, found])
            order = np.argsort(-promises, kind="stable")[:CENTRES]  # NaN comes last
            kept, promises = kept[order], promises[order]
            places = self._around(kept, CANDIDATES)
        nothing_new = promises[0] == -np.inf and self.box.whole.all()
        left = self._left() if nothing_new else kept[:0]
        return self._rng.choice(left) if len(left) else kept[0]

    def _left(self):
        """Places of whole numbers, in the unit cube, that were not asked for: nearly all were, or candidates are."""
        asked = {tuple(x) for x in [*(x for x, *_ in self._told), *self._open]}
        sides = [np.arange(low, high + 1) for low, high in zip(self.box.low, self.box.high, strict=True)]
        return np.array([self.box.cube(np.array(x)) for x in itertools.product(*sides) if x not in asked])

    def _asked(self, places):
        """Which places in the unit cube are those of questions, open or answered."""
        asked = self.box.cube(np.array([x for x, *_ in self._told] + self._open).reshape(-1, len(self.box.low)))
        return np.any(np.all(np.abs(places[:, None] - asked) <= self._same, axis=2), axis=1)

    def _around(self, centres, n):
        """Places in the unit cube near some of the centres."""
        picked = centres[self._rng.integers(len(centres), size=n)]
        reach = np.exp(self._rng.uniform(*np.log(REACH), size=(n, 1)))
        return np.clip(picked + reach * self._rng.normal(size=picked.shape), 0.0, 1.0)

    def _seen(self, pending: list[np.ndarray]) -> tuple[Evaluations, Scale, Units]:
        """What the model is given: what was told, and questions answered by what it makes of that; in its units,
        padded."""
        told, errors = (np.array(column) for column in list(zip(*self._told, strict=True))[1:])
        scale = Scale.of(told[np.isfinite(told)])
        told = np.where(np.isfinite(told), told, np.nanmax(np.where(np.isfinite(told), told, np.nan)))
        y, errors = scale(told), scale.error(told, errors)
        places = self.box.cube(np.array([x for x, *_ in self._told]))
        if self._units is None:
            self._units = Units.of(places, y, errors)
        x = self._units(places)
        seen = self._evaluations(x, y, errors)
        if pending:
            others = self._units(self.box.cube(np.array(pending)))
            guessed = _means(self.surrogate, seen, jnp.asarray(_padded(others)))[: len(pending)]
            together = [x, others], [y, guessed], [errors, np.zeros(len(pending))]
            seen = self._evaluations(*map(np.concatenate, together))
        return seen, scale, self._units

    def _evaluations(self, x, y, errors):
        known = _padded(np.ones(len(x), bool))
        columns = [_padded(x), _padded(y.astype(np.float32)), known]
        return Evaluations(*map(jnp.asarray, columns + [_padded(errors.astype(np.float32))] * self._has_errors))


@eqx.filter_jit
def _promises(acquisition, surrogate, seen, xt, key):
    return acquisition(surrogate, seen, xt, key)


@eqx.filter_jit
def _foreseen(surrogate, seen, xt):
    return [a[0] for a in surrogate.foresee(seen, xt)]


@eqx.filter_jit
def _means(surrogate, seen, xt):
    return surrogate.moments(seen, xt)[0]


def _padded(a):
    return pad(a, wide_bucket(len(a), 2**30))
