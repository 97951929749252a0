"""Plausible wrong answers to lesson 99's exercises, and what they must be told."""

from graphlib import TopologicalSorter


def as_dict(tags):
    return {tag["Key"]: tag["Value"] for tag in tags}


def looks_at_the_seat_only(tags, seat):
    return as_dict(tags).get("seat") == seat


def looks_at_the_course_only(tags, seat):
    return as_dict(tags).get("workshop") == "data-parallel"


def takes_a_beginning(tags, seat):
    pairs = as_dict(tags)
    return pairs.get("workshop") == "data-parallel" and pairs.get("seat", "-").startswith(seat)


def wants_exactly_two(tags, seat):
    return tags == [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": seat}]


def needs_tags(tags, seat):
    pairs = as_dict(tags)
    return pairs["workshop"] == "data-parallel" and pairs["seat"] == seat


def says_which(tags, seat):
    pairs = as_dict(tags)
    return pairs.get("workshop") and pairs.get("seat")


def one_level(uses):
    """Puts what is used behind the rest, and stops there."""
    used = set().union(*uses.values())
    return [thing for thing in uses if thing not in used] + sorted(used)


WRONG = {
    "99.1": [
        (looks_at_the_seat_only, "would delete a thing that has only the seat"),
        (looks_at_the_course_only, "would delete a thing that has no seat"),
        (takes_a_beginning, "would delete a thing that is seat ada-2's"),
        (wants_exactly_two, "leaves a thing that has a third tag, too"),
        (needs_tags, "stopped with KeyError: 'workshop'"),
        (says_which, "returned 'ada' .* Return True or False"),
        (lambda tags, seat: None, "returned None .* Return True or False"),
    ],
    "99.2": [
        (
            lambda uses: list(TopologicalSorter(uses).static_order()),
            "'configuration' is deleted before 'endpoint'",
        ),
        (list, "'storage' is deleted before 'roles'"),
        (lambda uses: list(uses)[::-1], "'configuration' is deleted before 'endpoint'"),
        (one_level, "'e' is deleted before 'z', which uses it"),
        (lambda uses: sorted(uses), "'configuration' is deleted before 'endpoint'"),
        (lambda uses: set(uses), "Return a list"),
        (lambda uses: None, "Return a list"),
        (
            lambda uses: [
                thing
                for thing in list(TopologicalSorter(uses).static_order())[::-1]
                if thing in uses
            ],
            "'storage' is missing",
        ),
        (lambda uses: list(uses) * 2 if uses else [], "has something twice"),
    ],
}
