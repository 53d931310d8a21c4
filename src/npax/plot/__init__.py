"""Pictures of predictions: small functions of an axes. Needs matplotlib (`pip install 'npax[plot]'`).

Not imported by `import npax`; say `import npax.plot`.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("`npax.plot` needs matplotlib: pip install 'npax[plot]'.") from error

from .curve import posterior as posterior
from .equal_earth import equal_earth as equal_earth
from .field import field as field, points as points
from .panels import mean_and_std as mean_and_std, scattered as scattered
from .world import world as world
