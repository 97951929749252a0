"""`workshop.why`: three lines about a job, and the evidence below them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from workshop.diagnosis import jobs
from workshop.diagnosis.evidence import Evidence, Rank, name_ranks, shorten, show_place
from workshop.diagnosis.reading import newest_record, read_record, record_of_process
from workshop.diagnosis.rules import Finding, find
from workshop.diagnosis.rules.collectives import hang_of
from workshop.diagnosis.rules.messages import waited_in
from workshop.diagnosis.steps import step_times

LAST_LINES = 6
NEXT_TIME = "Ask the next time while it runs, and let a hang end with an error: "


@dataclass(frozen=True)
class Answer:
    """findings: the likeliest cause first; none: the job shows no fault that is known."""

    evidence: Evidence = field(repr=False)
    findings: list[Finding]

    @property
    def cause(self) -> str:
        """In a few words; empty where nothing was found."""
        return self.findings[0].cause if self.findings else ""

    @property
    def known(self) -> bool:
        """Whether enough is recorded: what ranks call, of those that have ended also what else
        would show that they trained wrongly."""
        recorded = self._calls_recorded and (self.evidence.running or self._training_recorded)
        return bool(self.findings or (recorded and not (self._killed or self.evidence.gone)))

    @property
    def _training_recorded(self) -> bool:
        """Whether anything of weights, models and loaders is."""
        notes = [rank.note for rank in self.evidence.ranks]
        return any(note.get("objects") or note.get("hashes") for note in notes)

    @property
    def _killed(self) -> list[Rank]:
        """The ranks that left without a word: nobody knows what they would have done."""
        ended = [] if self.evidence.running else self.evidence.everybody
        return [rank for rank in ended if not (rank.end or rank.name.startswith("ps "))]

    @property
    def _calls_recorded(self) -> bool:
        return any(rank.collectives for rank in self.evidence.everybody)

    def __str__(self) -> str:
        if not self.findings:
            lines = self._nothing_found()
        else:
            first = self.findings[0]
            lines = [
                f"{first.where}",
                f"Most likely: {first.cause}. {_sentence(first.reason)}",
                f"Do: {first.remedy}",
            ]
        return "\n".join([*lines, "", "Evidence:", *self._rows()])

    def _nothing_found(self) -> list[str]:
        """The three lines of a job against which nothing speaks."""
        state, everybody = "runs" if self.evidence.running else "has ended", self.evidence.everybody
        verdict = "it shows no fault" if self._calls_recorded else "what it calls is not recorded"
        if self._killed:
            verdict = "a rank was killed, and whether it hung or worked is not known"
        first = f"{self.evidence.name} {state}; {verdict}."
        if not everybody:
            second = "Its log has no error that is known, and its ranks are not recorded."
            return [first, second, f"Mind: {jobs.ADVICE}"]
        hang = hang_of(self.evidence)
        if hang and self.evidence.running:
            there, busy = hang.ranks[0], hang.missing[0]
            second = (
                f"{there.name} waits in {hang.collective} at {show_place(hang.collective.place)}, "
                f"and {busy.name} has not come yet: it is at {show_place(busy.place)}."
            )
            return [first, second, "Nothing to do, unless that takes too long: then ask again."]
        if self._killed:
            places = (f"{rank.name} at {show_place(rank.place)}" for rank in self._killed)
            second = f"Killed: {', '.join(places)}. No error is known."
            return [first, second, f"Do: {NEXT_TIME}{self.evidence.timeout}."]
        if gone := self.evidence.gone:
            first = f"{self.evidence.name} runs; {name_ranks(gone)} left it, without an error."
            second = "Others may work on alone; in a collective they would wait for ever."
            return [first, second, "Do: ask again if they stay at their lines (below)."]
        if self._calls_recorded:
            if not self.known:
                first = f"{self.evidence.name} {state}; its calls show no fault."
            second = (
                f"Its {len(everybody)} ranks called the same collectives, none waits long for "
                "another, and no error is known."
            )
            unseen = (
                "Of its weights, models and loaders nothing is recorded: a fault would not show."
            )
            return [first, second, "Nothing to do." if self.known else unseen]
        second = f"No collective of its {len(everybody)} ranks is recorded, and no error is known."
        third = (
            "So a hang would not show here (torch's collectives are recorded, TensorFlow's and "
            "Horovod's are not). Ask again: ranks that stay at the lines below wait there."
            if self.evidence.running
            else "Its ranks came to their end. That it was slow, or is wrong, would not show here."
        )
        return [first, second, third]

    def _rows(self) -> list[str]:
        """A line for each rank, the step times, what else was found, the log's end."""
        rows = [f"  {self.evidence.command}"] if self.evidence.command else []
        rows += [f"  {_state(rank)}" for rank in self.evidence.everybody]
        steps = step_times(self.evidence)
        for row in steps.of_ranks if steps else ():
            rows.append(
                f"  rank {row.rank}: step {1000 * row.seconds:.1f} ms = compute "
                f"{1000 * row.compute:.1f} + wait {1000 * row.wait:.1f} + exposed communication "
                f"{1000 * row.communication:.1f}; {row.data:.0%} of it for data"
            )
        rows += [f"  also: {also.cause}: {also.where}" for also in self.findings[1:4]]
        rows += [f"  not read: {problem}" for problem in self.evidence.problems]
        if not self.evidence.everybody:
            rows += [f"  not recorded: {jobs.ADVICE}"]
        # Behind a rank's error, or Ctrl-C, follows what torchrun has to say of it.
        script_log, *_ = re.split(
            r"(?m)^Traceback.*\n +File .*torchrun|^.*distributed/run.py", self.evidence.text
        )
        last_lines = [text for text in script_log.splitlines() if text.strip()][-LAST_LINES:]
        return rows + [f"  log: {shorten(text)}" for text in last_lines]

    __repr__ = __str__


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def _state(rank: Rank) -> str:
    """Whether it lives, how it ended, what it called last, where it is."""
    left, how = rank.end.get("how") == "exit", [rank.error] if rank.error else []
    state = "is ending" if rank.end else "runs"
    if not rank.alive:
        state = "ended without an exception" if left else "ended" if rank.end else "was killed"
    state += ", but a call keeps it from answering" if rank.silent else ""
    waits = rank.pending[0] if rank.pending else waited_in(rank)  # it may have called more since
    last = f"last call {rank.collectives[-1]}" if rank.collectives else "no call is recorded"
    called = f"waits in {waits}" if waits else last
    place = f"; {'now' if rank.alive else 'last'} at {show_place(rank.place)}"
    words = ", ".join([state, *map(shorten, how)])
    return f"{rank.name}: {words}; {called}{'' if rank.end and not rank.place[0] else place}"


def diagnose(job=None, session=None) -> Answer:
    """Say why a job hangs, is slow or failed.

    Args:
        job: None for the last ranks started here; the folder of a record or a process's id, for
            ranks; what `workshop.start_ranks` returned; an estimator, or a job's name.
        session: what workshop.session returned, for a job's name on AWS.

    A job that runs goes on undisturbed. Raises NoEvidence, with what to do.
    """
    record = getattr(job, "record", None)
    if job is None:
        evidence = read_record(newest_record())
    elif record is not None:
        evidence = read_record(Path(record))
    elif isinstance(job, int) or (isinstance(job, str) and job.isdigit()):
        evidence = read_record(record_of_process(int(job)))
    elif isinstance(job, Path) or (isinstance(job, str) and ("/" in job or Path(job).is_dir())):
        evidence = read_record(Path(job))
    else:
        evidence = jobs.read_job(job, session)
    return Answer(evidence, find(evidence))


why = diagnose  # as `workshop.why`
