"""What a rule is. `@rule` makes one of a function, with the cause and the remedy that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workshop.diagnosis.evidence import Evidence


@dataclass(frozen=True)
class Finding:
    """cause: a few words. where: which rank, which collective, which line. reason: why that is
    likely. remedy: what to do."""

    cause: str
    where: str
    reason: str
    remedy: str


Cases = Iterator[tuple[str, str] | Finding]


@dataclass(frozen=True)
class Rule:
    """match yields (where, reason), or whole Findings where the rule has several causes."""

    cause: str
    remedy: str
    match: Callable[[Evidence], Cases]

    def findings(self, evidence: Evidence) -> Iterator[Finding]:
        """What the rule finds in the evidence."""
        for case in self.match(evidence):
            yield case if isinstance(case, Finding) else Finding(self.cause, *case, self.remedy)


def rule(cause: str = "", remedy: str = "") -> Callable[[Callable[[Evidence], Cases]], Rule]:
    """Make a Rule of a function. Without arguments: the function yields whole Findings."""
    return lambda match: Rule(cause, remedy, match)
