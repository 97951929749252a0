"""Ranks that died: of an error that names its reason, of a signal, of what another rank sent."""

from __future__ import annotations

import linecache
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workshop.diagnosis import horovod
from workshop.diagnosis.evidence import EFFECTS, Evidence, Rank, is_script, shorten, show_place
from workshop.diagnosis.rules.collectives import (
    BRANCH,
    ORDER,
    OTHER_CALL,
    OTHER_ORDER,
    OTHER_SIZE,
    SIZES,
    UNEVEN,
    behind,
    branch_of,
)
from workshop.diagnosis.rules.rule import Cases, Finding, rule
from workshop.diagnosis.source import loops_around

LOST = "a rank did not come"
SERVER_SECONDS = 30.0  # so long a parameter server may take to start


@dataclass(frozen=True)
class KnownError:
    """A row of errors.toml, which explains it."""

    cause: str
    words: list[str]
    means: str
    remedy: str
    survivable: bool = False
    of_a_file: bool = False

    def search(self, text: str) -> re.Match | None:
        """Where its words are in a text."""
        matches = (re.search(words, text) for words in self.words)
        return min(filter(None, matches), key=lambda match: match.start(), default=None)


_ROWS = tomllib.loads(Path(__file__).with_name("errors.toml").read_text("utf-8"))["error"]
ERRORS = [KnownError(**row) for row in _ROWS]


def own_errors(evidence: Evidence) -> list[Rank]:
    """The ranks that ended with an error which is no effect of another's, the first one first."""
    failed = [rank for rank in evidence.ranks if rank.end.get("how") == "exception"]
    return sorted((r for r in failed if not r.gave_up), key=lambda rank: rank.note["time"])


def _texts(evidence: Evidence) -> Iterator[tuple[Rank | None, str]]:
    """(rank, text) where a cause may stand: the ranks' own errors, a job's reason, the log."""
    yield from ((rank, rank.end["message"]) for rank in own_errors(evidence))
    if reason := evidence.description.get("FailureReason", ""):
        yield None, reason
    # What ranks died of outweighs what was also said.
    if not own_errors(evidence):
        for line in evidence.lines:
            yield (None if line.rank is None else evidence.rank(line.rank)), line.text


def _has_failed(evidence: Evidence) -> bool:
    """Whether anything says so; of a job that runs without recorded ranks nobody knows."""
    status = evidence.description.get("TrainingJobStatus")
    unknown = not evidence.ranks and not evidence.statuses and status != "Completed"
    return bool(any(evidence.statuses) or status == "Failed" or own_errors(evidence) or unknown)


@rule()
def known_error(evidence: Evidence) -> Cases:
    """The first error whose words are in errors.toml, which has its cause, too."""
    failed, texts = _has_failed(evidence), list(_texts(evidence))
    for error in ERRORS:
        for rank, text in texts if failed or error.survivable else ():
            if match := error.search(text):
                writing = error.of_a_file and _writing(evidence)
                line = text.rfind("\n", 0, match.start()) + 1
                where = shorten(text[max(match.start() - 60, line) :].splitlines()[0])
                if rank is not None:
                    where = f"rank {rank.number}, {show_place(rank.place)}: {where}"
                yield Finding(error.cause, where, writing or error.means, error.remedy)
                return


def _writing(evidence: Evidence) -> str:
    """A sentence about a rank that was ended while it saved something, as names say; or ""."""
    for rank in evidence.ranks:
        at = [linecache.getline(*place[:2]) + place[2] for place in filter(is_script, rank.stack)]
        if not (rank.end or rank.pending) and re.search("(?i)save|write|dump", " ".join(at)):
            place = show_place(rank.place)
            return f"{rank.name} still wrote it, at {place}, and no barrier made the others wait"
    return ""


@rule()
def sizes_on_the_wire(evidence: Evidence) -> Cases:
    """gloo ends a rank to which another sends more than it expects."""
    match = re.search(r"preamble.length <= op.nbytes. (\d+) vs (\d+)", evidence.text)
    ended = next((rank for rank in evidence.ranks if rank.aborted), None)
    other = next((rank for rank in evidence.ranks if rank is not ended), None)
    if not match or ended is None or other is None:
        return
    where = (
        f"rank {ended.number} got {match[1]} bytes where it expected {match[2]}, at "
        f"{show_place(ended.place)}; rank {other.number} is at {show_place(other.place)}"
    )
    alike = 0.9 < int(match[1]) / max(int(match[2]), 1) < 1.1
    if ended.place == other.place or alike:
        reason = "they pass tensors of different sizes or types to the same call"
        yield Finding(OTHER_SIZE, where, reason, SIZES)
    elif branch := branch_of(ended.stack, other.stack):
        yield Finding(OTHER_CALL, where, branch, BRANCH)
    elif _has_left_the_loop(ended, other, evidence):
        inner = max(ended, other, key=lambda rank: len(loops_around(rank.stack) or ()))
        reason = f"one is in its loop and the other behind it: it {behind(inner.place)}"
        yield Finding("uneven batches", where, reason, UNEVEN)
    else:
        reason = "they are at different calls, in one of which more is sent than in the other"
        yield Finding(OTHER_ORDER, where, reason, ORDER)


def _has_left_the_loop(ended: Rank, other: Rank, evidence: Evidence) -> bool:
    """Whether one of the two is in a loop in which the other isn't.

    The script says so, if it can be read; else what the ranks have called more than twice.
    """
    loops = loops_around(ended.stack), loops_around(other.stack)
    if None not in loops:
        inside, outside = (set(loops[0] or ()), set(loops[1] or ()))
        return inside > outside or outside > inside
    counts = Counter(call.place for rank in evidence.ranks for call in rank.collectives)
    repeated = {place for place, count in counts.items() if count > 2}
    return bool(repeated) and not {ended.place, other.place} <= repeated


# How launchers, shells and SageMaker say which rank a signal ended
SIGNALS = (
    r"process rank (?P<rank>\d+) with PID \d+ on\s+node \S+\s+exited on\s+signal (?P<no>\d+)",
    r"exitcode\s*: -(?P<no>\d+)",
    r"Signal (?P<no>\d+) \(SIG\w+\) received by PID (?P<pid>\d+)",
    r"exitcode: -(?P<no>\d+)\) local_rank: (?P<rank>\d+)",
    r"(?i)exit ?code:? ?-(?P<no>\d+)\b",
    r"(?i)(exit ?code|exit status|exited with)[: ]+(?P<status>1[2-5]\d)\b",
)


@rule(
    "a rank was killed",
    "Signal 9 is mostly Linux's, when memory runs out: take a smaller batch, or more memory (dmesg "
    "shows it). Read the first rank that failed, not the others. Save checkpoints to resume from.",
)
def killed(evidence: Evidence) -> Cases:
    """A signal ended a rank, as its launcher, or a job's reason says."""
    number, who = _signal(evidence)
    if not number:
        return
    rank = who or next((r for r in evidence.ranks if not r.end and not r.alive), None)
    where = f"rank {rank.number}, last seen at {show_place(rank.place)}" if rank else "a rank"
    reason = f"signal {number} ended it, and the others were then ended"
    notes = [rank.note for rank in evidence.ranks if "memory_kills" in rank.note]
    kills = max((note["memory_kills"] - note["memory_kills_before"] for note in notes), default=0)
    if number == 9 and kills > 0:
        memory = next(error for error in ERRORS if error.cause == "out of memory")
        reason = f"the kernel has killed {kills} of its cgroup's processes for want of memory"
        yield Finding(memory.cause, where, reason, memory.remedy)
    else:
        yield where, reason


def _signal(evidence: Evidence) -> tuple[int, Rank | None]:
    """The signal that ended a rank, and which, where it is said; 0 if none did."""
    text = "\n".join([evidence.text, evidence.description.get("FailureReason", "")])
    for pattern in SIGNALS:
        for match in re.finditer(pattern, text):
            groups = match.groupdict()
            number = int(groups.get("no") or int(groups["status"]) - 128)
            if number != 15:  # that is the launcher's own, for the others
                pids = {str(rank.note.get("pid")): rank for rank in evidence.ranks}
                rank = pids.get(groups.get("pid") or "") or evidence.rank(
                    int(groups.get("rank") or -1)
                )
                return number, rank
    # Ranks that no launcher starts: a negative status, or a shell's
    statuses = [s for s in evidence.statuses if s is not None]
    number = next((-s if s < 0 else s - 128 for s in statuses if s < 0 or s > 128), 0)
    return (0 if number in (6, 15) else number), None


@rule(
    "horovod stall",
    "Look at what the missing ranks do instead: each must submit the same tensors, equally often.",
)
def horovod_stall(evidence: Evidence) -> Cases:
    """Not all ranks have submitted a tensor, as Horovod itself says."""
    for tensors, missing in horovod.stalled(evidence)[:1]:
        ranks = [rank for rank in evidence.ranks if rank.number in missing]
        where = f"rank {', '.join(map(str, missing)) or '?'} does not submit {tensors[:160]}"
        places = [f"rank {rank.number} is at {show_place(rank.place)}" for rank in ranks]
        yield where, "; ".join(["the other ranks have submitted it and wait", *places])


@rule("server not there", "Start that task, or see why it ended; compare TF_CONFIG of all tasks.")
def server_not_there(evidence: Evidence) -> Cases:
    """A parameter server of TF_CONFIG's cluster at whose port nobody listens."""
    for task in evidence.tasks:
        missing = task.note.get("unreached", {})
        if missing and task.note["time"] - task.note["began"] > SERVER_SECONDS:
            name, address = next(iter(missing.items()))
            where = f"{task.name} is at {show_place(task.place)}"
            yield where, f"nobody listens at {address}, where {name} should be"
            return


WAITED = (
    "a rank waited for another, which did not come or was gone; which, the log does not say: {}"
)
MISSING = (
    "Look for the first error of any rank in the log. If there is none, the ranks called different "
    "collectives: let the next job tell more (below)."
)


OF_ALL = "Look at that line: what it does is wrong on every rank, or does not fit the other ranks."


@rule("error", "Look at that line and its data: the other ranks only waited for this one.")
def raised(evidence: Evidence) -> Cases:
    """A rank's own error, which is no effect of another's."""
    failed = own_errors(evidence)
    rank = failed[0] if failed else None
    if rank and not rank.error.startswith("KeyboardInterrupt"):
        kind, error = rank.error.partition(":")[0], shorten(rank.error, 300)
        alike = all(r.place == rank.place and r.error.startswith(kind) for r in failed)
        if alike and len(failed) == len(evidence.ranks) > 1:
            where = f"all {len(failed)} ranks, {show_place(rank.place)}"
            yield Finding("error", where, f"all raised {error}", OF_ALL)
        else:
            yield f"rank {rank.number}, {show_place(rank.place)}", f"it raised {error}"
    if not evidence.ranks and evidence.description.get("TrainingJobStatus") == "Failed":
        reason = " ".join(evidence.description.get("FailureReason", "no reason").split())
        if EFFECTS.search(reason):
            yield Finding(LOST, "the job's FailureReason", WAITED.format(reason), MISSING)
        else:
            yield "the job's FailureReason", f"it says {shorten(reason, 300)}"


@rule("error", "Read the log from its first error on.")
def failed(evidence: Evidence) -> Cases:
    """A command that failed, if nothing else says why."""
    statuses = [status for status in evidence.statuses if status]
    if statuses:
        lines = [line.text.strip() for line in evidence.lines if line.text.strip()]
        errors = [text for text in lines if re.search(r"\w(Error|Exception)\b", text)]
        where = shorten((errors or lines or ["the log is empty"])[-1])
        yield where, f"the command ended with status {statuses[0]}"


@rule(LOST, MISSING)
def gave_up(evidence: Evidence) -> Cases:
    """A rank ended because another did not come, and nothing says why that did not."""
    for rank in [rank for rank in evidence.everybody if rank.gave_up][:1]:
        message = shorten(rank.end["message"].splitlines()[0])
        reason = "it waited for another rank, which came too late or was gone"
        whom = "another rank"
        if gone := [other.name for other in evidence.everybody if other.end.get("how") == "exit"]:
            whom = ", ".join(gone)
            reason = f"it waited for {whom}, which had ended without an error"
        yield f"{rank.name} waited for {whom} at {show_place(rank.place)}: {message}", reason
