"""Whether a value is one that a lesson's parameter can have, by the parameters cell's own value."""

from __future__ import annotations

import ast
import math

KINDS = {str: "a text", bool: "true or false", list: "a list", dict: "a mapping"}


class UnknownParameter(Exception):
    """A parameter that the notebook does not have."""


class WrongParameter(UnknownParameter):
    """A parameter whose value the notebook cannot use."""


def defaults(source: str) -> dict[str, str]:
    """Name -> expression, as a parameters cell assigns them."""
    found = {}
    for one in ast.parse(source).body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            found[one.targets[0].id] = ast.unparse(one.value)
    return found


def check(notebook: str, given: dict[str, object], known: dict[str, str]) -> None:
    """Raise UnknownParameter for a name that is not known, WrongParameter for a wrong value.

    notebook: its file's name. known: name -> the parameters cell's expression. A value is wrong if
    it is of another type than the cell's own, or a number that is none, infinite or below 0.
    """
    if unknown := sorted(set(given) - set(known)):
        raise UnknownParameter(
            f"{notebook} has no parameter {', '.join(unknown)}. It has: "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    for name, value in given.items():
        if (wanted := _wanted(value, known[name])) is not None:
            raise WrongParameter(f"{notebook}: {name} is {value!r}; expected {wanted}.")


def _wanted(value: object, default: str) -> str | None:
    """What a parameter has to be, with the cell's own value as example; None if it is that."""
    try:
        own = ast.literal_eval(default)
    except (ValueError, SyntaxError):  # an expression: nothing is known of it
        return None
    if isinstance(own, int | float) and not isinstance(own, bool):
        kinds = (int,) if isinstance(own, int) else (int, float)
        fits = type(value) in kinds and 0 <= value < math.inf
        kind = "a whole number" if isinstance(own, int) else "a number"
        return None if fits else f"{kind} that is not below 0, such as {own}"
    if own is None or type(value) is type(own):
        return None
    return f"{KINDS.get(type(own), type(own).__name__)}, such as {own!r}"
