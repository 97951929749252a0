"""What goes wrong with a stack, as a sentence that says what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from botocore.exceptions import BotoCoreError, ClientError


class StackError(Exception):
    """A stack cannot be made, used or deleted; the message says why and what to do."""


class MissingStack(StackError):
    """The seat has no such stack yet."""


@contextlib.contextmanager
def asking(full: str) -> Iterator[None]:
    """A refusal of AWS, or no answer, becomes a StackError that names the stack."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StackError(
            f"The stack {full}: {error}. What CloudFormation has begun goes on without this "
            "program. Mend the cause, then run the same again: it finishes what is left."
        ) from error
