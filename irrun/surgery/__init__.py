"""Edit models: rename, expose inner values, merge, fold constants, drop unused layers, write older operation sets.

Each function takes a model and returns another one. It keeps elements that irrun does not use, such as ``rt_info``, and
changes no file: ``irrun.save_model`` writes the result. ``require_equal`` runs both models and compares their outputs.
"""

from irrun.surgery._decompositions import DECOMPOSITIONS
from irrun.surgery._folding import fold_constants
from irrun.surgery._merging import merge
from irrun.surgery._names import expose, rename_input, rename_layer, rename_output
from irrun.surgery._opsets import downgrade, upgrade
from irrun.surgery._reshaping import Thawed, batch_axes, batch_shapes, reshape, thaw
from irrun.surgery._simplifying import Simplified, Step, simplify
from irrun.surgery._storage import STORED, storage_limit, store
from irrun.surgery._unused import drop_unused
from irrun.surgery._verify import (
    Reference,
    is_close,
    merged,
    original,
    probe,
    require_agreement,
    require_equal,
    require_equal_on,
    require_reshaped,
)
from irrun.surgery._versions import with_version

__all__ = [
    "DECOMPOSITIONS", "STORED", "Reference", "Simplified", "Step", "Thawed", "batch_axes", "batch_shapes",
    "downgrade", "drop_unused", "expose", "fold_constants", "is_close", "merge", "merged", "original", "probe",
    "rename_input", "rename_layer", "rename_output", "require_agreement", "require_equal", "require_equal_on",
    "require_reshaped", "reshape", "simplify", "storage_limit", "store", "thaw", "upgrade", "with_version",
]  # fmt: skip
