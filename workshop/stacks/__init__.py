"""The CloudFormation stacks of a seat: made, changed, looked at, deleted.

The same calls go to AWS and to the local endpoint. Doing any of them again is safe: what is done
already is left alone, and what was interrupted is finished.
"""

from workshop.stacks.deleting import delete
from workshop.stacks.errors import MissingStack, StackError
from workshop.stacks.making import Deployed, deploy
from workshop.stacks.names import ALL, STACKS, stack_name, tags
from workshop.stacks.reading import NOT_THERE, Standing, outputs, status

__all__ = [
    "ALL",
    "NOT_THERE",
    "STACKS",
    "Deployed",
    "MissingStack",
    "StackError",
    "Standing",
    "delete",
    "deploy",
    "outputs",
    "stack_name",
    "status",
    "tags",
]
