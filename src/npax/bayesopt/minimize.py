"""The minimum of an expensive function of up to a few coordinates."""

import contextlib
from collections.abc import Callable
from numbers import Integral

import numpy as np
from scipy.optimize import OptimizeResult

from ..arguments import true_or_false, whole_number
from ..progress import Progress
from .acquisition import AbstractAcquisition
from .optimizer import Optimizer


def minimize(
    f: Callable[[np.ndarray], float],
    bounds,
    n_init: int = 10,
    n_iter: int = 50,
    acquisition: str | AbstractAcquisition = "ei",
    model="gp-universal",
    *,
    integrality=None,
    random_state=None,
    callback: Callable[[OptimizeResult], object] | None = None,
    progress: bool = False,
) -> OptimizeResult:
    """The minimum of `f` in a box, in `n_init + n_iter` evaluations, by Bayesian optimisation.

        result = npax.bayesopt.minimize(branin, [(-5, 10), (0, 15)], random_state=0)
        result.x, result.fun

    The first `n_init` places are quasi-random; each of the `n_iter` that follow is the most promising one by a
    pretrained neural process that has seen all values. It is for functions that cost seconds or more: every
    evaluation after the first ones adds 0.05 to 0.25 s on a CPU core, and the first of them some seconds of
    compilation. For an evaluation that your own code drives, or several at a time, see `Optimizer`, which this is a
    loop over.

    **Arguments:** `f` takes `x [d]` and returns one number, noisy or not; NaN or infinity says that the evaluation
    failed (it is left out with a `FailedEvaluation` warning, and the search goes elsewhere). `bounds`, `integrality`,
    `acquisition`, `model`, `random_state`: see `Optimizer`. `callback(result)` is called after every evaluation with
    what is known by then; if it returns true or raises `StopIteration`, the search ends. `progress`: show a progress
    bar.

    **Returns** a `scipy.optimize.OptimizeResult`: `x [d]` and `fun`, the lowest value seen and its place; `x_iters
    [n d]` and `func_vals [n]`, all finite values in order; `nfev`, evaluations, failed ones included; `message`,
    `success`. With a noisy function prefer `x_model`, the evaluated place where the model believes the function to be
    lowest, and `fun_model`, its belief there (`x` and `fun` where Ctrl-C came before the model was used).

    **Pitfall:** a Gaussian process with a length scale for each axis, fitted at every step, finds the minimum of a
    smooth function more closely, in a third to two thirds of the time: 30 evaluations of Branin's end 0.002 above it,
    not 0.011.
    Of many local minima a search may stay with the first that it finds; a larger `n_init` looks around for longer.

    **Nothing is lost:** Ctrl-C ends the search and returns what is known, with `success=False`. An exception in `f`
    is passed on with what is known in its attribute `result`.

    **Raises:** `ValueError` or `TypeError` for arguments that cannot be, and for an `f` that does not return a number.
    """
    whole_number(0, n_iter=n_iter)
    true_or_false(progress=progress)
    if not (callback is None or callable(callback)):
        raise TypeError(f"`callback` must be a function of the result so far, or None; got {callback!r}.")
    options = {"integrality": integrality, "n_init": n_init, "acquisition": acquisition, "model": model}
    optimizer = Optimizer(bounds, random_state=random_state, **options)
    total, message, success = n_init + n_iter, "", True
    try:
        with Progress("Evaluations", total, shown=progress) as bar:
            for _ in range(total):
                x = optimizer.ask()
                optimizer.tell(x, _value(f(x.copy())))
                bar.advance(1)
                if callback is not None and _stops(callback, optimizer):
                    message = "`callback` ended the search."
                    break
    except KeyboardInterrupt:
        message, success = "Interrupted.", False
    except Exception as error:
        error.result = optimizer.result(f"{type(error).__name__}: {error}", success=False)  # pyright: ignore
        error.add_note("The evaluations made until then are in the attribute `result` of this exception.")
        raise
    result = optimizer.result(message, success)
    result.message = result.message or "All evaluations were made."
    result.x_model, result.fun_model = result.x, result.fun
    if len(result.func_vals) and (success or optimizer.used):  # whoever stopped it does not wait for a model to compile
        with contextlib.suppress(KeyboardInterrupt):
            result.x_model, result.fun_model = optimizer.recommend()
    return result


def _value(y):
    """What `f` returned, as one number; an array of one number is one."""
    if isinstance(y, complex | str) or y is None or np.size(y) != 1:
        raise TypeError(f"`f` must return one number, got {y!r}.")
    return y if isinstance(y, Integral) else np.reshape(y, ())  # NumPy makes an object of a large one


def _stops(callback, optimizer):
    try:
        return bool(callback(optimizer.result()))
    except StopIteration:
        return True
