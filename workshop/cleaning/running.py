"""Delete all that a seat has, step after step, and look again.

What is refused is noted, and the rest goes on. Nothing is remembered between two runs: each looks
for itself, so a second run finishes what a first one left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from workshop.cleaning.found import Found, find
from workshop.cleaning.steps import steps
from workshop.cleaning.things import REFUSALS, Thing, why


@dataclass
class Report:
    """What a run did. refused: (kind, name) -> why. left: what a look afterwards found."""

    done: list[Thing] = field(default_factory=list)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    left: Found = field(default_factory=Found)

    @property
    def nothing_left(self) -> bool:
        """Whether the last look saw everything, and nothing of the seat."""
        return not self.left.things and not self.left.unseen

    def lines(self) -> list[str]:
        """What is left, and why, a line for each; "Left: nothing." if nothing is."""
        lines = [
            f"Left: {one.kind}: {one.name}: "
            + self.refused.get((one.kind, one.name), "it is still there; run this again")
            for one in self.left.things
        ]
        lines += [f"Left: {kind}: nobody knows: {why}" for kind, why in self.left.unseen.items()]
        lines += ["Left: nothing."] if self.nothing_left else []
        return lines + [
            f"Not touched: {one.kind}: {one.name}: {one.why}" for one in self.left.strangers
        ]


class Cleaner:
    """One run. say: takes a line of progress for each thing. report: grows while it runs."""

    def __init__(self, session, say: Callable[[str], None] = print) -> None:
        self.session, self.say = session, say
        self.report = Report()

    def run(self) -> Report:
        """Delete what there is, then look again."""
        for step in steps(self.session):
            try:
                # Looked for only now: what an earlier step stopped may have left more.
                things = step.find().ours
            except REFUSALS as error:
                self.say(f"{step.kind}: could not be looked at: {why(error)}")
                continue
            for thing in things:
                self._delete(step, thing)
        self.report.left = find(self.session)
        return self.report

    def _delete(self, step, thing: Thing) -> None:
        what = f"{thing.kind}: {thing.name}" + (f" ({thing.count})" if thing.count > 1 else "")
        try:
            step.delete(thing)
        except REFUSALS as error:
            self.report.refused[thing.kind, thing.name] = why(error)
            self.say(f"{what}: REFUSED: {why(error)}")
        else:
            self.report.done.append(thing)
            self.say(f"{what}: {'stopped' if 'running' in thing.kind else 'deleted'}")


def clean(session, say: Callable[[str], None] = print) -> Report:
    """Delete all that the seat has, and look again. Doing it again changes nothing more."""
    return Cleaner(session, say).run()
