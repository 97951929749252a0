"""The checks of lesson 99's exercises."""

from __future__ import annotations

import copy

from workshop.lesson.check import Wrong, exercise

COURSE = {"Key": "workshop", "Value": "data-parallel"}


def _seat(name: str) -> dict[str, str]:
    return {"Key": "seat", "Value": name}


# tags, seat, whether it may be deleted, what it is
CASES = (
    ([COURSE, _seat("ada")], "ada", True, "has both tags"),
    ([_seat("ada"), {"Key": "team", "Value": "x"}, COURSE], "ada", True, "has a third tag, too"),
    ([], "ada", False, "has no tags"),
    ([_seat("ada")], "ada", False, "has only the seat: another program may use that word"),
    ([COURSE], "ada", False, "has no seat"),
    ([COURSE, _seat("ada-2")], "ada", False, "is seat ada-2's"),
    ([COURSE, _seat("ad")], "ada", False, "is seat ad's"),
    ([COURSE, _seat("Ada")], "ada", False, "is seat Ada's: tags are case-sensitive"),
    ([{"Key": "workshop", "Value": "cooking"}, _seat("ada")], "ada", False, "is of another course"),
    (
        [{"Key": "Workshop", "Value": "data-parallel"}, _seat("ada")],
        "ada",
        False,
        "has the key Workshop, which is another key",
    ),
)

GRAPHS = (
    {"endpoint": {"configuration"}, "configuration": {"model"}, "model": set()},
    {"storage": set(), "roles": {"storage"}, "notebook": {"roles", "storage"}, "network": set()},
    {"record": set(), "log 1": {"record"}, "log 2": {"record"}},
    {"roles": {"storage"}},
    {"a": {"z"}, "b": {"a", "c"}, "c": {"z"}, "z": {"e"}, "e": set()},
    {},
)


@exercise("99.1")
def may_delete(answer) -> str:
    """Only what carries both tags, with the right values."""
    for tags, seat, expected, description in CASES:
        decision = answer(copy.deepcopy(tags), seat)
        if not isinstance(decision, bool):
            raise Wrong(f"It returned {decision!r} for {tags}. Return True or False.")
        if decision and not expected:
            raise Wrong(f"For seat {seat!r} it would delete a thing that {description}: {tags}.")
        if expected and not decision:
            raise Wrong(f"For seat {seat!r} it leaves a thing that {description}: {tags}.")
    return f"It tells {len(CASES)} things apart, and deletes nobody else's."


@exercise("99.2")
def deletion_order(answer) -> str:
    """Users before what they use, everything once."""
    for uses in GRAPHS:
        order = answer(copy.deepcopy(uses))
        if not isinstance(order, list):
            raise Wrong(f"It returned {order!r} for {uses}. Return a list.")
        things = set(uses).union(*uses.values())
        if missing := things - set(order):
            raise Wrong(f"{sorted(missing)[0]!r} is missing in {order}, for {uses}.")
        if len(order) != len(things):
            raise Wrong(f"{order} has something twice, or something that is not there: {uses}.")
        _check_order(order, uses)
    return f"In {len(GRAPHS)} cases each thing goes before what it uses."


def _check_order(order: list, uses: dict[str, set[str]]) -> None:
    for thing, used in uses.items():
        for thing_used in sorted(used):
            if order.index(thing_used) < order.index(thing):
                raise Wrong(
                    f"In {order} {thing_used!r} is deleted before {thing!r}, which uses it: {uses}."
                )
