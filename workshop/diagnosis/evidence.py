"""What is known of a job: its ranks, with what each has called and where it is; its log; its end.

`reading` makes it of a record's folder, `jobs` of a SageMaker job. Nothing here imports torch.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LIBRARIES = (
    "workshop_recorder",
    "__autograph_generated_file",
    "site-packages",
    "/lib/python3",
    "<",
    "dist-packages",
)

# How a rank's error reads if the reason is another rank.
EFFECTS = re.compile(
    r"(?i)timed out waiting|connection (closed|reset)|broken pipe|socket timeout|recvbytes|gloo/"
    r"|timed out after .* waiting|wait timeout|nccl (communicator|error)|barrier.*timeout"
    r"|ranks? .* failed to pass monitoredBarrier|horovod has been shut down"
    r"|collective ops is aborted by: (?!shape)"
)

# What TensorFlow puts before the reason of an error in a graph
GRAPH_TRACE = re.compile(r"Graph execution error:|^(Detected at node|File \S|\.\.\.$)")

Place = tuple[str, int, str]  # file, line, function


class NoEvidence(Exception):
    """There is nothing to read; the message says what to do."""


@dataclass(frozen=True)
class Collective:
    """A rank's call of a collective. seq: its number in the group. created: Unix seconds. stack:
    where it was called, innermost line first, and of these place is the script's innermost.
    """

    group: str
    seq: int
    op: str
    sizes: str
    dtypes: str
    place: Place
    created: float
    done: bool
    stack: tuple[Place, ...] = ()

    @property
    def elements(self) -> int:
        """How many numbers go in."""
        sizes = [filter(None, size.split("x")) for size in self.sizes.split(" + ")]
        return sum(math.prod(map(int, size)) for size in sizes) if self.sizes else 0

    @property
    def in_backward(self) -> bool:
        """Whether DDP exchanges gradients by it; on GPUs a thread calls it that has no stack."""
        files = [file for file, *_ in self.stack]
        return any("/torch/autograd/" in f for f in files) or not (files or self.place[0])

    @property
    def in_join(self) -> bool:
        """Whether its rank has no more data, and within `Join` only answers the others."""
        return any("/algorithms/join.py" in f and name == "__exit__" for f, _, name in self.stack)

    def __str__(self) -> str:
        of = " ".join(filter(None, [self.sizes, self.dtypes]))
        return f"{self.op} no. {self.seq}" + (f" ({of})" if of else "")


@dataclass
class Rank:
    """One rank. note: what its recorder wrote. collectives: the newest, in order. alive: it runs.

    silent: it runs and did not answer. aborted: a fatal signal ended it.
    """

    number: int
    note: dict
    collectives: list[Collective] = field(default_factory=list)
    alive: bool = False
    silent: bool = False
    aborted: bool = False

    @property
    def name(self) -> str:
        """Such as "rank 1", or "ps 0" of TensorFlow's tasks that are no ranks."""
        return self.note.get("task") or f"rank {self.number}"

    @property
    def end(self) -> dict:
        """How it ended, as far as it could note that; empty if not."""
        return self.note.get("end", {})

    @property
    def error(self) -> str:
        """The line of its error that tells most: the first one that is not of a graph's trace."""
        lines = [line.strip() for line in self.end.get("message", "").splitlines() if line.strip()]
        telling = (line for line in lines if not GRAPH_TRACE.search(line))
        first = lines[0] if lines else ""
        kind = first.partition(":")[0]
        line = next(telling, first)
        return line if line.startswith(kind) else f"{kind}: {line}"

    @property
    def stack(self) -> list[Place]:
        """Where it is or was last, innermost call first."""
        return [tuple(frame) for frame in self.end.get("stack") or self.note.get("stack", [])]

    @property
    def library_calls(self) -> list[Place]:
        """What the script's innermost line has called, innermost first; empty if it works."""
        return list(itertools.takewhile(lambda place: not is_script(place), self.stack))

    @property
    def place(self) -> Place:
        """The script's innermost line on the stack, or of the error that ended it."""
        if self.end.get("place"):
            return tuple(self.end["place"])
        return next(filter(is_script, self.stack), ("", 0, ""))

    @property
    def gave_up(self) -> bool:
        """Whether it ended because another rank did not come, or had gone: no cause, an effect."""
        return bool(EFFECTS.search(self.end.get("message", "")))

    @property
    def pending(self) -> list[Collective]:
        """The collectives that it has called and that have not come to a good end."""
        # torch also counts the collective as done in which a rank gave up.
        if self.gave_up:
            return self.collectives[-1:]
        left = self.end.get("how") == "exit"  # who leaves in order waits for nothing
        return [] if left else [call for call in self.collectives if not call.done]

    def samples(self, begin: float = 0.0, end: float = math.inf) -> Counter:
        """How often its main thread was seen in which (activity, file, line, function), between two
        Unix times; once it had joined the others. Activity: "data", "communication", "backward",
        "optimizer" or "compute"."""
        places = [tuple(place) for place in self.note.get("places", [])]
        seen = self.note.get("samples", [])
        return Counter(places[number] for when, number in seen if begin <= when <= end)

    @property
    def averages_in(self) -> str:
        """The group in which it exchanges gradients, or else adds up; "" if it does neither."""
        sums = [c for c in self.collectives if "reduce" in c.op]
        groups = Counter(call.group for call in [c for c in sums if c.in_backward] or sums)
        return max(groups, key=groups.__getitem__, default="")

    @property
    def objects(self) -> dict:
        """What its models, optimizers and loaders say."""
        return self.note.get("objects", {})


@dataclass(eq=False)  # several rules ask for what is computed from the same evidence
class Evidence:
    """Of a job. name: for display. command: what was started, where and when. tasks: recorded
    processes that are no ranks, such as parameter servers. lines: the log, each with `rank` and
    `text`. statuses: of the commands. running: at least one of them lives. problems: what could not
    be read, and why.
    """

    name: str
    ranks: list[Rank] = field(default_factory=list)
    tasks: list[Rank] = field(default_factory=list)
    lines: Sequence = ()
    statuses: list[int | None] = field(default_factory=list)
    running: bool = False
    description: dict = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    command: str = ""

    @property
    def everybody(self) -> list[Rank]:
        """The ranks, and the tasks that are no ranks."""
        return [*self.ranks, *self.tasks]

    @property
    def timeout(self) -> str:
        """By what a hang ends with an error, in the library by which its ranks exchange."""
        if any("horovod" in rank.note.get("libraries", []) for rank in self.ranks):
            return "HOROVOD_STALL_CHECK_TIME_SECONDS=10, HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=30"
        return "a timeout for init_process_group"

    @property
    def gone(self) -> list[Rank]:
        """The ranks that have left while others go on, which may or may not need them."""
        go_on = any(rank.alive and not rank.end for rank in self.ranks)
        return [rank for rank in self.ranks if go_on and rank.end.get("how") == "exit"]

    @property
    def world_size(self) -> int:
        """As the ranks say; how many there are, if none does."""
        return max([rank.note.get("world_size") or 0 for rank in self.ranks] + [len(self.ranks)])

    @property
    def text(self) -> str:
        """The whole log."""
        return "\n".join(line.text for line in self.lines)

    def rank(self, number: int) -> Rank | None:
        """The rank of this number, if it left anything."""
        return next((rank for rank in self.ranks if rank.number == number), None)


def shorten(text: str, length: int = 160) -> str:
    """So many characters of a line, and what is left of the last word."""
    part = re.match(rf".{{{length}}}\S{{,80}}", text := text.strip())
    return f"{part[0]} ..." if part and part[0] != text else text


def is_script(place: Place) -> bool:
    """Whether a line is of somebody's script, not of the interpreter or a package."""
    return bool(place[0]) and not any(part in place[0] for part in LIBRARIES)


def name_ranks(ranks: Sequence[Rank]) -> str:
    """Such as "ranks 0, 1 and 3"."""
    *first, last = [str(rank.number) for rank in ranks]
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


def show_place(place: Place) -> str:
    """Such as `train.py:41 in train`."""
    return f"{Path(place[0]).name}:{place[1]} in {place[2]}" if place[0] else "an unknown line"
