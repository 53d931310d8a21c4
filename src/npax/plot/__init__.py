"""Pictures of predictions: small functions of an axes. Needs matplotlib (`pip install 'npax[plot]'`).

Imported when it is first used.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("`npax.plot` needs matplotlib: pip install 'npax[plot]'.") from error

from .attention import attention_map as attention_map, attention_matrix as attention_matrix
from .bayesopt import regret as regret, search as search
from .curve import posterior as posterior
from .epidemic import epidemic_panels as epidemic_panels
from .equal_earth import equal_earth as equal_earth
from .field import field as field, points as points
from .flow import flow_panels as flow_panels
from .image import completion as completion, image as image
from .panels import mean_and_std as mean_and_std, scattered as scattered
from .predictions import prediction as prediction
from .regions import regions as regions
from .samples import samples as samples
from .task import task_panels as task_panels
from .world import world as world
