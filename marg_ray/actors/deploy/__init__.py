"""The process boundary: every plain class of this package as a Ray actor, and the handle a front end works with.

The only part of the package that imports Ray. Collaborators are built inside the actors' constructors, where Ray runs
them again after a crash; `max_task_retries=-1` hands a call to the restarted process, hence every method is idempotent.
"""

from marg_ray.actors.deploy.connection import connect
from marg_ray.actors.deploy.runtime import Control, Runtime, namespace_of

__all__ = ["Control", "Runtime", "connect", "namespace_of"]
