"""The dictionary `distribution`: the SDK ignores in silence what it does not know in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts
from workshop.preflight.finding import Finding, bad

WHAT = "distribution"
NOT_OURS = ("modelparallel",)  # model parallel training, which this course does not teach


def describe(job: JobConfiguration) -> str:
    """What starts the script."""
    if found := sorted(enabled(job)):
        return f"{' and '.join(found)} starts the script."
    if job.instance_count > 1:
        return (
            f"No distribution: each of the {job.instance_count} instances runs the script by "
            "itself and knows nothing of the others."
        )
    return "No distribution: one process."


def check(job: JobConfiguration) -> Iterator[Finding]:
    """Unknown keys, values that are no dictionaries, nothing enabled, several enabled."""
    known = facts()["strategies"]
    for key, value in job.distribution.items():
        if key not in known:
            yield _unknown_key(key, list(known))
        elif not isinstance(value, Mapping):
            yield bad(
                WHAT,
                f"{key} is {value!r}. Its value must be a dictionary; the SDK fails on others.",
                f'Write {{"{key}": {{"enabled": True}}}}.',
                "sdk",
            )
        else:
            yield from _inside(key, value, known[key])
    yield from _how_many(job)


def well_formed(job: JobConfiguration) -> bool:
    """Whether the rules about single strategies can read this dictionary."""
    return not any(check(job))


def enabled(job: JobConfiguration) -> set[str]:
    """The keys of those strategies that are switched on."""
    found = set()
    for key, value in job.distribution.items():
        inner = value.get("dataparallel") if key == "smdistributed" else value
        if isinstance(inner, Mapping) and inner.get("enabled") is True:
            found.add(key)
    return found & set(facts()["strategies"])


def _unknown_key(key: str, known: list[str]) -> Finding:
    near = difflib.get_close_matches(key, known, n=1)
    meant = facts()["meant"].get(key.lower()) or (near[0] if near else "")
    remedy = f'Did you mean "{meant}"?' if meant else f"Known keys: {', '.join(known)}."
    return bad(
        WHAT,
        f'The SDK does not know the key "{key}" and ignores it: the job would start without it.',
        remedy,
        "sdk",
    )


def _inside(key: str, value: Mapping, known: list[str]) -> Iterator[Finding]:
    for name in value:
        if name in known or name in NOT_OURS:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f'Did you mean "{near[0]}"?' if near else f"{key} takes: {', '.join(known)}."
        yield bad(
            WHAT,
            f'"{name}" in {key} is unknown to the SDK, which leaves it out without a word.',
            hint,
            "sdk",
        )
    if key == "smdistributed":
        inner = value.get("dataparallel", {})
        if not isinstance(inner, Mapping):
            yield bad(
                WHAT,
                f"smdistributed's dataparallel is {inner!r}, and must be a dictionary.",
                'Write {"smdistributed": {"dataparallel": {"enabled": True}}}.',
                "sdk",
            )
    elif value.get("enabled") not in (True, False, None):
        yield bad(
            WHAT,
            f"{key}'s enabled is {value['enabled']!r}. Only True switches it on for certain: the "
            "SDK hands it on as it is.",
            "Write True, without quotation marks.",
            "sdk",
        )


def _is_off(value: object) -> bool:
    """Whether a strategy is there, in the right form, and not switched on."""
    if isinstance(value, Mapping) and "dataparallel" in value:
        value = value["dataparallel"]
    return isinstance(value, Mapping) and value.get("enabled", False) is False


def _how_many(job: JobConfiguration) -> Iterator[Finding]:
    on = enabled(job)
    known = [key for key in job.distribution if key in facts()["strategies"]]
    if known and not on and all(map(_is_off, (job.distribution[key] for key in known))):
        yield bad(
            WHAT,
            f"{' and '.join(known)} is given but not enabled: the job would start without it.",
            'Add "enabled": True, or leave distribution out.',
            "sdk",
        )
    if len(on) > 1 and on != {"smdistributed", "torch_distributed"}:
        yield bad(
            WHAT,
            f"{' and '.join(sorted(on))} are enabled together. A script is started in one way.",
            "Keep the one that the script is written for.",
            "sdk",
        )
