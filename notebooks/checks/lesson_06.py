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


CAUSES = (
    "security group",
    "interface endpoint",
    "NAT gateway",
    "no EFA",
    "late rank",
    "two zones",
)
# job: (its cause, the lines that give it away, what they say)
LOGS = {
    "A": ("security group", (2, 3, 4), "algo-1 asks algo-2 and gets no answer, for half an hour"),
    "B": ("NAT gateway", (2, 3), "pip asks the package index, which is on the internet"),
    "C": ("late rank", (4, 5), "40 steps went well over EFA, and rank 8 is still reading"),
    "D": ("no EFA", (1, 2, 3), "it moves, a step in 40 s, and NCCL says Socket"),
    "E": ("interface endpoint", (3, 4), "the script asks an AWS service other than S3"),
}


@exercise("06.2")
def causes(answer) -> str:
    """Five logs: the cause, and a line that shows it."""
    got = answer()
    if not isinstance(got, dict) or set(got) != set(LOGS):
        raise Wrong(f"Return a dict with the keys {', '.join(LOGS)}; you returned {got!r}.")
    for job, (right, lines, _) in LOGS.items():
        if not isinstance(got[job], tuple | list) or len(got[job]) != 2:
            raise Wrong(f"Job {job}: a cause and a line's number, such as ('two zones', 1).")
        cause, line = got[job]
        if cause not in CAUSES:
            raise Wrong(f"Job {job}: {cause!r} is none of {', '.join(CAUSES)}.")
        if cause != right:
            raise Wrong(f"Job {job}: {_not_so(job, cause)}")
        if line not in lines:
            raise Wrong(f"Job {job}: right, but line {line} would be there without that cause too.")
    return "; ".join(f"{job}: {says}" for job, (_, _, says) in LOGS.items()) + "."


def _not_so(job: str, cause: str) -> str:
    if cause == "two zones":
        return "a longer way makes every message a little later, and stops none."
    if cause == "no EFA":
        return "without EFA ranks talk over TCP and say so: NET/Socket. There is no such line."
    if cause == "late rank" and job != "C":
        return "no line shows a rank that is busy while others wait in an all-reduce."
    if job == "C":
        return "the ranks did 40 steps together. Whoever talks so well has a network."
    if job == "D":
        return "look at the last line: it isn't hung."
    if cause == "security group":
        return "nothing here waits for the other instance."
    return "what is asked, and where is it: on another instance, at AWS, or on the internet?"


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
