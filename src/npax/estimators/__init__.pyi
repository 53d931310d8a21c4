from .averages import average as average
from .counts import CountRegressor as CountRegressor
from .degrees import PlanarDegrees as PlanarDegrees
from .extrapolation import Extrapolation as Extrapolation
from .fill import fill_gaps as fill_gaps
from .geo import interpolate as interpolate
from .lognormal import LogNormalRegressor as LogNormalRegressor
from .sklearn import DroppedRows as DroppedRows, NeuralProcessRegressor as NeuralProcessRegressor
