"""A deleted stack stays deleted, and can still be asked about.

moto 5.2.5 makes a stack's resources when somebody first asks for them. That includes those of a
deleted stack: whoever describes one by its id, or lists its resources, brings them back to life.
`freeze` makes a stack that goes keep its outputs and the list of its resources, as AWS does for
90 days, and takes what a condition leaves out from that list.
"""

from __future__ import annotations

from typing import Any

from moto.cloudformation.models import Stack

_moto_delete = Stack.delete
_moto_outputs, _moto_exports = Stack.outputs, Stack.exports
_moto_resources = Stack.stack_resources


def freeze() -> None:
    """Teach moto. Running it again changes nothing."""
    Stack.delete = _delete
    Stack.outputs = property(lambda self: _kept(self, "outputs", _moto_outputs))
    Stack.exports = property(lambda self: _kept(self, "exports", _moto_exports))
    Stack.stack_resources = property(_resources)


def _delete(self: Any) -> None:
    kept = {"outputs": self.outputs, "exports": [], "resources": self.stack_resources}
    _moto_delete(self)
    self.kept = kept


def _kept(stack: Any, name: str, ask: property) -> Any:
    kept = getattr(stack, "kept", None)
    return kept[name] if kept else ask.fget(stack)


def _resources(self: Any) -> list[Any]:
    return [one for one in _kept(self, "resources", _moto_resources) if one is not None]
