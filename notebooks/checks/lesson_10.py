"""Checks of lesson 10's exercises."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pandas as pd

from workshop.failures import five_jobs
from workshop.lesson.check import Wrong, exercise

OLD, PIECES = b"the checkpoint of step 100", [b"the ", b"checkpoint ", b"of step 200"]
COLLECTIVE = ("torch/distributed/distributed_c10d.py", 2806, "all_reduce")


def _log(*pieces: int | tuple[int, int]) -> list[str]:
    """A job's log: 40 is the step reached, (40, 30) an interruption after step 40."""
    lines = ["Training-toolkit starts the script", json.dumps({"event": "start", "rank": 0})]
    step = 0
    for piece in pieces:
        end, resumed = piece if isinstance(piece, tuple) else (piece, None)
        while step < end:
            step += 10 - step % 10  # the log has every tenth step, wherever it resumed
            lines.append(json.dumps({"event": "step", "step": step, "train_loss": 1 / step}))
        if resumed is not None:
            lines += ["SIGTERM: the instance is taken away"]
            lines += [json.dumps({"event": "resumed", "step": resumed})]
            step = resumed
    return lines


@exercise("10.1")
def done_twice(answer) -> str:
    """No interruption, one, two, one without loss, one from a step that the log never had."""
    cases = (
        (_log((340, 300), 500), 40, "one interruption"),
        (_log(200), 0, "no interruption"),
        (_log((340, 300), (320, 300), 400), 60, "two interruptions, the second before step 340"),
        (_log((100, 100), 200), 0, "an interruption right after a checkpoint"),
        (_log((150, 100), (290, 200), 300), 140, "two interruptions"),
        (_log((340, 305), 500), 35, "a checkpoint between two lines of the log"),
    )
    for lines, right, case in cases:
        try:
            got = answer(list(lines))
        except json.JSONDecodeError as error:
            raise Wrong("Some lines are not JSON: skip those that don't begin with {.") from error
        if type(got) is not int:
            raise Wrong(f"With {case} it returned {got!r}; return a whole number.")
        if got != right:
            raise Wrong(f"With {case} it is {right}, you said {got}. {_repeat_reason(case)}")
    return "Each interruption costs the steps since its checkpoint."


def _repeat_reason(case: str) -> str:
    return {
        "one interruption": "Subtract the step it resumed from from the step it had reached.",
        "no interruption": 'Without a line "resumed" nothing was done twice.',
        "two interruptions, the second before step 340": (
            "After a resume the training is back at that step: the highest step of the whole log "
            "is not the step that was reached."
        ),
        "an interruption right after a checkpoint": "Nothing was lost there.",
        "two interruptions": "Add up all interruptions.",
        "a checkpoint between two lines of the log": (
            "Count steps, not lines: from the step it had reached, subtract that of the resume."
        ),
    }[case]


def _records(ranks: int = 2, **different: str) -> list[dict]:
    """What the ranks of a good training leave; different: key -> "all", "last" or "none"."""
    hashes = ("images", "at_start", "after_first", "at_end")
    usual = dict.fromkeys(hashes, "none") | {"images": "all", "steps": "none"} | different
    records = []
    for rank in range(ranks):
        apart = {"all": rank, "last": int(rank == ranks - 1), "none": 0}
        record: dict = {"rank": rank, "steps": 20 - apart[usual["steps"]]}
        for key in hashes:
            record[key] = hashlib.sha256(f"{key} {apart[usual[key]]}".encode()).hexdigest()
        records.append(record)
    return records


@exercise("10.2")
def mistake(answer) -> str:
    """Each mistake, on two ranks and on three of which only the last differs; two at once."""
    weights = ("at_start", "after_first", "at_end")
    cases: list[tuple[list[dict], str | None, str]] = []
    for ranks, which in ((2, "all"), (3, "last")):
        start = dict.fromkeys(weights, which)
        gradients = dict.fromkeys(weights[1:], which)
        where = f"{ranks} ranks"
        cases += [
            (_records(ranks), None, f"{where}, a good training"),
            (_records(ranks, steps=which, at_end=which), "steps", f"{where}, steps differ"),
            (_records(ranks, images="none"), "images", f"{where}, the same images"),
            (_records(ranks, **start), "start", f"{where}, weights differ at the start"),
            (_records(ranks, **gradients), "gradients", f"{where}, after the first step"),
        ]
    cases.append((_records(3, images="last"), None, "3 ranks, of which two read the same images"))
    cases.append((_records(2, at_end="all"), None, "2 ranks, weights differ at the end only"))
    cases.append((_records(2, images="none", steps="all"), "steps", "two mistakes at once"))
    cases.append((_records(3, images="none", **start), "images", "two mistakes at once"))
    for records, right, case in cases:
        returned = answer(copy.deepcopy(records))
        if returned != right:
            raise Wrong(f"{case}: it is {right!r}, you said {returned!r}. {_mistake_reason(case)}")
    return "It names the mistake that no error message reports."


def _mistake_reason(case: str) -> str:
    if "of which two" in case:
        return '"images" is: all ranks read the same. Here they read two different sets.'
    if "at the end only" in case:
        return "After the first step the weights are equal, so the gradients were averaged."
    if "same images" in case:
        return "Each rank must read images of its own: equal hashes are the mistake."
    if "two mistakes" in case:
        return "The first of the list counts."
    if "good training" in case:
        return "Only the hash of the images differs, and it must."
    return "Compare all ranks, not only two: how many different values has each key?"


def _stack(rank: int, innermost: tuple[str, int, str], line: int) -> list[str]:
    """What a rank prints after SIGUSR1."""
    frames = [innermost, ("scripts/train.py", line, "train_step")]
    frames.append(("scripts/train.py", 131, "main"))
    head = f"[{rank}] Stack (most recent call first):"
    return [head, *(f'[{rank}]   File "{f}", line {n} in {name}' for f, n, name in frames)]


def _hang(innermost: dict[int, tuple[str, int, str]], mixed: bool = False) -> str:
    """The log of a job that hangs. mixed: the ranks' lines come in turns."""
    lines = [f'[{rank}] {{"event": "step", "step": 120}}' for rank in sorted(innermost)]
    stacks = [_stack(rank, at, 80 + rank) for rank, at in innermost.items()]
    lines += [line for group in zip(*stacks, strict=True) for line in group] if mixed else []
    lines += [] if mixed else [line for stack in stacks for line in stack]
    return "\n".join(lines)


@exercise("10.3")
def culprit(answer) -> str:
    """Logs with another rank and call each time, mixed lines, many ranks, and no culprit."""
    read = ("scripts/train.py", 61, "read_file")
    other = ("torch/distributed/distributed_c10d.py", 2700, "broadcast")
    waits = dict.fromkeys(range(4), COLLECTIVE)
    cases = (
        (_hang(waits | {2: read}), (2, "read_file"), "rank 2 reads a file"),
        (_hang(waits | {0: read}), (0, "read_file"), "rank 0 reads a file"),
        (_hang({3: read} | waits | {3: read}, mixed=True), (3, "read_file"), "mixed lines"),
        (_hang(waits | {1: other}), (1, "broadcast"), "rank 1 calls another collective"),
        (
            _hang(dict.fromkeys(range(4), other) | {2: COLLECTIVE}),
            (2, "all_reduce"),
            "all but rank 2 wait in a broadcast",
        ),
        (
            _hang(dict.fromkeys(range(12), COLLECTIVE) | {11: read}),
            (11, "read_file"),
            "rank 11 of 12 reads a file",
        ),
        (_hang(waits), None, "all ranks are in all_reduce"),
    )
    for log, right, case in cases:
        got = answer(log)
        if isinstance(got, list):
            got = tuple(got)
        if got != right:
            raise Wrong(f"{case}: it is {right!r}, you said {got!r}. {_hang_reason(got, right)}")
    return "It finds the rank that is somewhere else, and says so if there is none."


def _hang_reason(got, right) -> str:
    if right is None:
        return "If all ranks are in the same call, nobody stands out: return None."
    if got is None:
        return "A rank is elsewhere. (0 is a rank: `if rank` is False for it; 11 has two digits.)"
    if not isinstance(got, tuple) or len(got) != 2:
        return "Return two things: the rank and the function."
    if isinstance(got[0], str):
        return "The rank is a number: int()."
    if got[1] == right[1]:
        return "The function is right, the rank is not: a rank may have two digits."
    if got[1] in (COLLECTIVE[2], "broadcast"):
        return "Ranks in the collective that most others are in show the symptom, not the cause."
    if got[1] in ("main", "train_step"):
        return "The innermost call is the first frame of a rank's stack, not the last one."
    return "Whose innermost call is another one than that of the rest?"


@exercise("10.4")
def save(answer) -> str:
    """Break off at each piece; watch the file and its folder while it is being written."""
    for pieces_before_the_end in range(len(PIECES) + 1):
        with tempfile.TemporaryDirectory() as folder:
            _break_off(answer, Path(folder) / "latest", pieces_before_the_end)
    synced: list[tuple[int, bool]] = []  # at each call: bytes in the file, and was it renamed?
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latest"

        def fsync(descriptor: int) -> None:
            synced.append((os.fstat(descriptor).st_size, path.read_bytes() != OLD))

        path.write_bytes(OLD)
        with mock.patch("os.fsync", fsync), mock.patch("os.fdatasync", fsync):
            answer(path, _watching(path, PIECES))
        _whole(path, b"".join(PIECES), "At the end")
        _check_synced(synced)
    return "The old one or the new one, whole, whenever it is taken away."


def _check_synced(synced: list[tuple[int, bool]]) -> None:
    """Some call of fsync came after the last byte and before the new name."""
    whole = [renamed for size, renamed in synced if size == len(b"".join(PIECES))]
    if not whole:
        raise Wrong(
            "When all is written, flush, then os.fsync(that file), then rename. Otherwise its "
            "bytes may still be in memory when the name changes, and a power cut halves it."
        )
    if all(whole):
        raise Wrong(
            "os.fsync came after the new name: in between, a power cut leaves half a file under "
            "the checkpoint's name. First os.fsync, then rename."
        )


def _break_off(answer: Callable, path: Path, count: int) -> None:
    path.write_bytes(OLD)
    try:
        answer(path, _watching(path, PIECES[:count], breaks=True))
    except _Taken:
        pass
    else:
        raise Wrong("The error of `chunks` did not come out: the caller thinks all is well.")
    _whole(path, OLD, f"After an error at piece {count + 1}")


def _whole(path: Path, right: bytes, when: str) -> None:
    if not path.exists():
        raise Wrong(
            f"{when} there is no file: the old one was removed before the new one was whole."
        )
    if (content := path.read_bytes()) != right:
        raise Wrong(f"{when} the file holds {content!r}, not {right!r}.")
    if others := [file.name for file in path.parent.iterdir() if file != path]:
        raise Wrong(f"{when} {', '.join(others)} is left in the folder.")


class _Taken(Exception):
    """What `chunks` raises."""


def _watching(path: Path, pieces: list[bytes], breaks: bool = False) -> Iterator[bytes]:
    """Yield the pieces. Raise Wrong where somebody who reads now would find half a file."""
    for piece in [*pieces, b""]:
        if not path.exists() or path.read_bytes() != OLD:
            raise Wrong(
                "While it was being written, the old file was gone or changed. Who reads now, or "
                "resumes from it now, finds half a checkpoint. Write to another name."
            )
        if (
            not [file for file in path.parent.iterdir() if file != path]
            and piece != (pieces or [b""])[0]
        ):
            raise Wrong(
                "The new bytes are not in the file's own folder. Elsewhere may be another disk, "
                "from which a rename is a copy; and in memory a model may not fit a second time."
            )
        if piece:
            yield piece
    if breaks:
        raise _Taken("the instance was taken away")


@exercise("10.5")
def causes(answer) -> str:
    """The five jobs that were started last: of each its cause, and the rank that has it."""
    jobs = five_jobs.newest()
    given = answer(pd.DataFrame() if jobs is None else jobs.table.copy())
    if jobs is None:
        raise Wrong("No jobs have been started: run the cell with five_jobs.start(...) first.")
    if not isinstance(given, dict):
        raise Wrong(f"Return a dictionary: job -> (cause, rank), not {given!r}.")
    if missing := sorted(set(jobs.causes) - set(given)):
        raise Wrong(f"No entry for job {', '.join(missing)}. Each job needs a cause and a rank.")
    for name, right in jobs.causes.items():
        pair = tuple(given[name]) if isinstance(given[name], list) else given[name]
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise Wrong(
                f"Job {name}: give a cause and a rank, such as ('straggler', 0) or ('narrow "
                f"link', None), not {pair!r}."
            )
        if pair[0] not in five_jobs.CAUSES:
            raise Wrong(
                f"Job {name}: {pair[0]!r} is no cause. Causes are: {', '.join(five_jobs.CAUSES)}."
            )
        if isinstance(pair[1], str):
            raise Wrong(f"Job {name}: the rank is a number, 0 or 1, or None; not {pair[1]!r}.")
        if pair != right:
            rows = jobs.table[jobs.table["job"] == name].set_index("rank")
            raise Wrong(f"Job {name}: {_misreading(rows, right, pair)}")
    return "Four causes and a job that is merely long, told apart by what a step consists of."


def _misreading(rows: pd.DataFrame, right: tuple, given: tuple) -> str:
    """What somebody overlooked who named this cause and rank. rows: of the job, by rank."""
    if given[0] == right[0]:
        return _wrong_rank(rows, *right, given[1])
    shares = rows[five_jobs.PARTS].div(rows["step"], axis=0)
    if given[0] == "oversubscribed cores":
        threads, cores = rows["threads"].sum(), rows["cores"].max()
        return f"its ranks have {threads} threads together, on {cores} cores: that isn't it."
    if right[0] == five_jobs.NOTHING:
        return (
            f"its step is long, but {shares['compute'].min():.0%} of it is compute, on all ranks "
            "alike, and its ranks train more examples per second than the others: its batches are "
            "larger. A long step alone is no fault."
        )
    if given[0] == five_jobs.NOTHING:
        part = shares[["data", "wait", "communication"]].max()
        return f"{part.max():.0%} of a rank's step is {part.idxmax()}. Where does that come from?"
    if right[0] == "straggler":
        if given[0] == "slow input":
            return f"no rank waits for data for more than {shares['data'].max():.0%} of its step."
        waits, rest = rows["wait"].max(), rows["communication"].max()
        return (
            f"a rank spends much time in its collective, but {waits:.0f} ms of each step it waits "
            f"there for the other rank; the exchange itself takes {rest:.0f} ms."
        )
    if right[0] == "slow input":
        return (
            f"a rank does come late to the collective. But why? For {shares['data'].max():.0%} of "
            "its step it waits for data. Name the cause, not the effect."
        )
    count, size = rows["collectives"].max(), rows["KiB of each"].max()
    if given[0] in ("straggler", "slow input"):
        wait, exchange = shares[["wait", "communication"]].max()
        return (
            f"wait is {wait:.0%} of a step at most, and data are there in time: the ranks come "
            f"together. Then up to {exchange:.0%} of the step is communication."
        )
    if right[0] == "tiny buckets":
        return (
            f"the gradients are those of the other jobs, but here they go in {count} collectives "
            f"of {size:.0f} KiB. Each costs a latency, however wide the link is."
        )
    return (
        f"all gradients go in {count} collective{'s'[: count > 1]} of {size:.0f} KiB, as large as "
        "DDP makes them. Few large messages that take long: what is narrow?"
    )


def _wrong_rank(rows: pd.DataFrame, cause: str, rank: int | None, given: int | None) -> str:
    """The cause is right, the rank isn't."""
    if rank is None:
        return f"{cause} is right, but all ranks are alike: the rank is None."
    if given not in rows.index:
        return f"{cause} is right, and one rank has it. Which: {rows.index.tolist()}?"
    if cause == "slow input":
        data = rows.loc[given, "data"] / rows.loc[given, "step"]
        return f"{cause} is right, but rank {given} waits for data for {data:.0%} of its step only."
    return (
        f"{cause} is right, but you named the rank that waits, {rows.loc[given, 'wait']:.0f} ms of "
        "each step. Look who it waits for: the straggler itself waits for nobody."
    )
