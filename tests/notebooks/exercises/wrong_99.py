"""Wrong answers to lesson 99's exercises, as changes of the solutions, and what is said of them."""

COURSE, SEAT = 'by_key.get("workshop") == "data-parallel"', 'by_key.get("seat") == seat'
ORDER = "list(TopologicalSorter(uses).static_order())[::-1]"
ONE_LEVEL = """used = set().union(*uses.values())
return [thing for thing in uses if thing not in used] + sorted(used)"""

WRONG = {
    "99.1": [
        ({f"{COURSE} and ": ""}, "would delete a thing that has only the seat"),
        ({f" and {SEAT}": ""}, "would delete a thing that has no seat"),
        (
            {SEAT: 'by_key.get("seat", "-").startswith(seat)'},
            "would delete a thing that is seat ada-2's",
        ),
        (
            {f"{COURSE} and {SEAT}": 'by_key == {"workshop": "data-parallel", "seat": seat}'},
            "leaves a thing that has a third tag, too",
        ),
        ({'by_key.get("workshop")': 'by_key["workshop"]'}, "stopped with KeyError: 'workshop'"),
        (
            {COURSE: 'by_key.get("workshop")', SEAT: 'by_key.get("seat")'},
            "returned 'ada' .* Return True or False",
        ),
        ("return None", "returned None .* Return True or False"),
    ],
    "99.2": [
        ({"[::-1]": ""}, "'configuration' is deleted before 'endpoint'"),
        ("return list(uses)", "'storage' is deleted before 'roles'"),
        (ONE_LEVEL, "'e' is deleted before 'z', which uses it"),
        ("return set(uses)", "Return a list"),
        ({ORDER: f"[thing for thing in {ORDER} if thing in uses]"}, "'storage' is missing"),
        ("return list(uses) * 2 if uses else []", "has something twice"),
    ],
}
