"""Plausible wrong answers to lesson 99's exercises, and what they must be told."""

from graphlib import TopologicalSorter


def as_dict(tags):
    return {tag["Key"]: tag["Value"] for tag in tags}


def looks_at_the_seat_only(tags, seat):
    return as_dict(tags).get("seat") == seat


def looks_at_the_course_only(tags, seat):
    return as_dict(tags).get("workshop") == "data-parallel"


def takes_a_beginning(tags, seat):
    found = as_dict(tags)
    return found.get("workshop") == "data-parallel" and found.get("seat", "-").startswith(seat)


def wants_exactly_two(tags, seat):
    return tags == [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": seat}]


def forgets_capitals(tags, seat):
    found = {key.lower(): value.lower() for key, value in as_dict(tags).items()}
    return found.get("workshop") == "data-parallel" and found.get("seat") == seat


def needs_tags(tags, seat):
    found = as_dict(tags)
    return found["workshop"] == "data-parallel" and found["seat"] == seat


def says_which(tags, seat):
    found = as_dict(tags)
    return found.get("workshop") and found.get("seat")


def one_level(uses):
    """Puts what is used behind the rest, and stops there."""
    used = set().union(*uses.values())
    return [one for one in uses if one not in used] + sorted(used)


WRONG = {
    "99.1": [
        (looks_at_the_seat_only, "would delete a thing that has only the seat"),
        (looks_at_the_course_only, "would delete a thing that has no seat"),
        (takes_a_beginning, "would delete a thing that is seat ada-2's"),
        (wants_exactly_two, "leaves a thing that has a third tag, too"),
        (forgets_capitals, "would delete a thing that is seat Ada's"),
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
                one for one in list(TopologicalSorter(uses).static_order())[::-1] if one in uses
            ],
            "'storage' is missing",
        ),
        (lambda uses: list(uses) * 2 if uses else [], "has something twice"),
    ],
}
