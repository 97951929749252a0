"""Checks of lesson 06's exercises."""

from __future__ import annotations

import copy
import math

from workshop.lesson.check import Wrong, exercise

ITSELF, ANOTHER, ANYWHERE = {"GroupId": "sg-1"}, {"GroupId": "sg-2"}, {"CidrIp": "0.0.0.0/0"}


def _rule(protocol: str, *, pairs: tuple = (), ranges: tuple = (), ports: tuple = ()) -> dict:
    named = dict(zip(("FromPort", "ToPort"), ports, strict=False))
    return {"IpProtocol": protocol, "UserIdGroupPairs": [*pairs], "IpRanges": [*ranges], **named}


EVERYTHING_ITSELF = _rule("-1", pairs=(ITSELF,))
HTTPS = _rule("tcp", ranges=(ANYWHERE,), ports=(443, 443))
# what it is: (rules in, rules out, whether ranks get through)
GROUPS = {
    "in and out to itself": ([EVERYTHING_ITSELF], [EVERYTHING_ITSELF], True),
    "the same, among other rules": ([HTTPS, EVERYTHING_ITSELF], [HTTPS, EVERYTHING_ITSELF], True),
    "itself beside another group": (
        [_rule("-1", pairs=(ANOTHER, ITSELF))],
        [EVERYTHING_ITSELF],
        True,
    ),
    "no rule": ([], [], False),
    "members let in, and out only to port 443": ([EVERYTHING_ITSELF], [HTTPS], False),
    "members let out and not in": ([HTTPS], [EVERYTHING_ITSELF], False),
    "out to 0.0.0.0/0, which EFA does not take for the group itself": (
        [EVERYTHING_ITSELF],
        [_rule("-1", ranges=(ANYWHERE,))],
        False,
    ),
    "another group": (
        [_rule("-1", pairs=(ANOTHER,))],
        [_rule("-1", pairs=(ANOTHER,))],
        False,
    ),
    "every port, but only of TCP": (
        [_rule("tcp", pairs=(ITSELF,), ports=(0, 65535))],
        [_rule("tcp", pairs=(ITSELF,), ports=(0, 65535))],
        False,
    ),
    "everything from and to anywhere, and itself only to port 22": (
        [_rule("-1", ranges=(ANYWHERE,)), _rule("tcp", pairs=(ITSELF,), ports=(22, 22))],
        [_rule("-1", ranges=(ANYWHERE,)), _rule("tcp", pairs=(ITSELF,), ports=(22, 22))],
        False,
    ),
    "every port of TCP in, everything out": (
        [_rule("tcp", pairs=(ITSELF,), ports=(0, 65535))],
        [EVERYTHING_ITSELF],
        False,
    ),
}


@exercise("06.1")
def lets_ranks_through(answer) -> str:
    """Eleven groups, of which three let ranks through."""
    for description, (ingress, egress, right) in GROUPS.items():
        group = {"GroupId": "sg-1", "IpPermissions": ingress, "IpPermissionsEgress": egress}
        got = answer(copy.deepcopy(group))
        if got is not right:
            raise Wrong(f"A group with this: {description}. You said {got!r}; {right} is right.")
    return "In and out, every protocol, and the group itself."


@exercise("06.2")
def link_seconds(answer) -> str:
    """Several layouts, against the bytes that a ring's last rank on an instance sends."""
    for megabytes, instances, each, gbit in (
        (100, 2, 1, 10),
        (100, 2, 4, 10),
        (100, 8, 1, 1),
        (400, 4, 8, 100),
        (100, 1, 8, 10),
        (100, 1, 1, 10),
    ):
        ranks = instances * each
        share = 2 * (ranks - 1) / ranks if instances > 1 else 0.0
        right = share * megabytes * 8e6 / (gbit * 1e9)
        got = answer(megabytes, instances, each, gbit)
        if not isinstance(got, int | float) or not math.isclose(got, right, rel_tol=1e-6):
            call = f"link_seconds({megabytes}, {instances}, {each}, {gbit})"
            why = _reason(got, right, instances, ranks)
            raise Wrong(f"{call} is {right:.6g}, you said {got!r}. {why}")
    return "Ranks decide the share, the link the rest; one instance alone sends nothing."


def _reason(got, right: float, instances: int, ranks: int) -> str:
    if not isinstance(got, int | float):
        return "Return a number of seconds."
    if right == 0:
        return (
            "With one instance nothing crosses its link: the ranks communicate through its memory."
        )
    if math.isclose(got * 8, right, rel_tol=1e-6):
        return "The link is in bits, the gradients are in bytes: 8 bits each."
    if math.isclose(got * 2, right, rel_tol=1e-6):
        return "The ring goes round twice: once to add, once to pass the sums on."
    by_instances = (instances - 1) / instances * ranks / (ranks - 1)
    if math.isclose(got, right * by_instances, rel_tol=1e-6):
        return "N is the number of ranks, not of instances."
    return "2 (N - 1) / N times the bytes, times 8, divided by the link's bits per second."


@exercise("06.3")
def crossing_mbit(answer) -> str:
    """Against the formula of the step itself: at the link returned, both sides must be equal."""
    for fixed, divided, megabytes, instances in (
        (0.0, 0.1, 1, 2),
        (0.0, 0.1, 1, 8),
        (0.02, 0.1, 1, 2),
        (0.02, 0.3, 25, 4),
        (0.5, 0.05, 100, 16),
    ):
        call = f"crossing_mbit({fixed}, {divided}, {megabytes}, {instances})"
        got = answer(fixed, divided, megabytes, instances)
        if not isinstance(got, int | float) or not got > 0:
            raise Wrong(f"{call} gave {got!r}; a number of Mbit/s above 0 was expected.")
        right = 2 * megabytes * 8 / divided
        if math.isclose(got, right, rel_tol=1e-6):
            continue
        single = fixed + divided
        sent = 2 * (instances - 1) / instances * megabytes * 8  # Mbit
        many = fixed + divided / instances + sent / got
        raise Wrong(
            f"{call} gave {got:.6g} Mbit/s. There, one instance takes {single:.6g} s a step and "
            f"{instances} take {many:.6g} s. {_slip(got, right, divided, single, instances)}"
        )
    return "2 x bytes / divided: how many instances there are does not matter."


def _slip(got: float, right: float, divided: float, whole: float, instances: int) -> str:
    if math.isclose(got * 8, right, rel_tol=1e-6):
        return "That is in MB/s: a byte has 8 bits."
    if math.isclose(got, right * divided / whole, rel_tol=1e-6):
        return "The fixed part is on both sides: it cancels."
    if math.isclose(got, right * (instances - 1) / instances, rel_tol=1e-6):
        return "You divided by all of `divided`; n instances save only divided - divided / n."
    return "At the link asked for, both are equal."
