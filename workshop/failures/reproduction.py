"""What is said of a failure: what was done, the symptom, the line that shows it, the remedy."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workshop.diagnosis.answer import diagnose


@dataclass(frozen=True)
class CheckResult:
    """What the check of one run found.

    failed: whether the failure showed itself as described. line: the line of the log that shows
    it, or with the mistake fixed the one that shows the good end. impossible: why it could not
    be tried on this machine. log: all lines of the ranks, each after its rank in brackets, where a
    lesson shows them. why: what `workshop why` says of it, three lines.
    """

    failed: bool
    line: str = ""
    impossible: str = ""
    log: tuple[str, ...] = ()
    why: str = ""


def three_lines(job, session=None) -> str:
    """What `workshop why` says of a job, or of the ranks of a record."""
    return "\n".join(str(diagnose(job, session)).splitlines()[:3])


def first_line(lines: Iterable, pattern: str) -> str:
    """The text of the first line in which a regular expression is found; empty if in none.

    lines: each with a `text`, of processes or of a job's log.
    """
    return next((line.text for line in lines if re.search(pattern, line.text)), "")


@dataclass(frozen=True)
class Failure:
    """A way in which training breaks.

    name: as `workshop break` takes it. done: what its reproduction does. symptom: what one sees.
    remedy: what to do. lesson: where it is explained, such as "02". seconds: about how long it
    takes. run(fixed): reproduces it, with the mistake fixed first if asked to. cause: as
    `workshop why` names it; empty if it cannot. thread: where somebody asks the same, in public.
    recorded: the line of the log, or empty where the log says nothing.
    """

    name: str
    done: str
    symptom: str
    remedy: str
    lesson: str
    seconds: int
    run: Callable[[bool], CheckResult]
    cause: str = ""
    thread: str = ""
    recorded: str = ""


@dataclass(frozen=True, repr=False, kw_only=True)
class Reproduction(CheckResult):
    """A failure that was reproduced, or tried with the mistake fixed. seconds: it took so long."""

    failure: Failure
    fixed: bool
    seconds: float

    @property
    def as_described(self) -> bool:
        """Whether the failure showed itself, or with `fixed` did not."""
        return not self.impossible and self.failed != self.fixed

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        if self.impossible:
            return f"not tried: {self.impossible}"
        if self.fixed:
            return "fixed: it did not fail" if self.as_described else "fixed, and it still failed"
        return "it broke as described" if self.as_described else "it did not break as described"

    def __repr__(self) -> str:
        failure = self.failure
        rows = {"what was done": failure.done, "symptom": failure.symptom}
        if self.fixed:
            rows = {"what was done": "the same without the mistake"}
        rows |= {
            "line of the log": self.line or "none",
            "workshop why": " ".join(self.why.splitlines()[:2]),
            "remedy": failure.remedy,
            "explained in": f"lesson {failure.lesson}",
            "result": f"{self.verdict} ({self.seconds:.0f} s)",
        }
        lines = [failure.name]
        for title, text in rows.items():
            if not text:
                continue
            lines += textwrap.wrap(
                f"{title:<17}{text}",
                102,
                break_long_words=False,
                initial_indent="  ",
                subsequent_indent=" " * 19,
            )
        return "\n".join(lines)
