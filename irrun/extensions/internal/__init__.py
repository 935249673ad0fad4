"""OpenVINO's internal operations, which its transformations write: the graph that serves language models.

Their pages (``operation-specs/internal``) have no versions. The revisions of an operation say which release and which
commit of its page have which inputs, attributes and defaults.
"""

from irrun.extensions.internal import pa_kv_reorder

__all__ = ["pa_kv_reorder"]
