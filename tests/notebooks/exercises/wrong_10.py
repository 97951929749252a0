"""Plausible wrong answers to lesson 10's exercises, and what the check says of each."""

import json
import os
import re
import tempfile
from collections import Counter
from pathlib import Path


def events(lines):
    return [json.loads(line) for line in lines if line.startswith("{")]


def parses_every_line(lines):
    return sum(json.loads(line)["event"] == "resumed" for line in lines)


def number_of_interruptions(lines):
    return sum(event["event"] == "resumed" for event in events(lines))


def from_the_highest(lines):
    total = highest = 0
    for event in events(lines):
        if event["event"] == "resumed":
            total += highest - event["step"]
        highest = max(highest, event.get("step", 0))
    return total


def counts_lines(lines):
    seen = [event["step"] for event in events(lines) if event["event"] == "step"]
    return 10 * (len(seen) - len(set(seen)))


def as_a_text(lines):
    return "40"


FRAME = re.compile(r"\[(\d+)\] +File .* in (\w+)")


def frames(log, innermost=True):
    by_rank = {}
    for line in log.splitlines():
        if frame := FRAME.match(line):
            if innermost:
                by_rank.setdefault(int(frame[1]), frame[2])
            else:
                by_rank[int(frame[1])] = frame[2]
    return by_rank


def blames_the_many(log):
    by_rank = frames(log)
    (most, _), *_ = Counter(by_rank.values()).most_common()
    return next((rank, function) for rank, function in by_rank.items() if function == most)


def outermost(log):
    by_rank = frames(log, innermost=False)
    return next(iter(by_rank.items()))


def always_somebody(log):
    by_rank = frames(log)
    rare = min(Counter(by_rank.values()).items(), key=lambda item: item[1])[0]
    return next((rank, function) for rank, function in by_rank.items() if function == rare)


def the_rank_alone(log):
    return always_somebody(log)[0]


def as_it_was_read(log):
    rank, function = always_somebody(log)
    return str(rank), function


def one_digit(log):
    by_rank = {}
    for line in log.splitlines():
        if frame := re.match(r"\[\d*(\d)\] +File .* in (\w+)", line):
            by_rank.setdefault(int(frame[1]), frame[2])
    counts = Counter(by_rank.values())
    if len(counts) < 2:
        return None
    rare = min(counts, key=counts.get)
    return next((rank, function) for rank, function in by_rank.items() if function == rare)


def who_is_not_in_all_reduce(log):
    away = [(rank, call) for rank, call in frames(log).items() if call != "all_reduce"]
    return away[0] if away else None


def zero_is_nobody(log):
    answer = always_somebody(log)
    return answer if answer[0] else None


def only_not_all_reduce(log):
    for rank, function in frames(log).items():
        if function not in ("all_reduce", "broadcast"):
            return rank, function
    return None


def in_place(path, chunks):
    with open(path, "wb") as stream:
        for chunk in chunks:
            stream.write(chunk)
        os.fsync(stream.fileno())


def renamed(path, chunks, flush=True, fsync="before", clean=True, swallow=False):
    """The solution, with one thing wrong. fsync: when, "before" the rename if it is right."""
    partial = Path(f"{path}.new")
    try:
        with partial.open("wb") as stream:
            if fsync == "too early":
                os.fsync(stream.fileno())
            for chunk in chunks:
                stream.write(chunk)
            if flush:
                stream.flush()
            if fsync == "before":
                os.fsync(stream.fileno())
            elif fsync == "too late":
                partial.rename(path)
                os.fsync(stream.fileno())
        if fsync != "too late":
            partial.rename(path)
    except Exception:
        if not swallow:
            raise
    finally:
        if clean:
            partial.unlink(missing_ok=True)


def elsewhere(path, chunks):
    with tempfile.NamedTemporaryFile(dir=tempfile.gettempdir()) as stream:
        for chunk in chunks:
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())
        Path(path).write_bytes(Path(stream.name).read_bytes())


def name_mistake(records, images_equal, order=("steps", "images", "at_start", "after_first")):
    """The solution with another rule for the images, or another order."""
    names = {"at_start": "start", "after_first": "gradients"}
    for key in order:
        values = [record[key] for record in records]
        shown = images_equal(values) if key == "images" else len(set(values)) > 1
        if shown:
            return names.get(key, key)
    return None


def all_equal(values):
    return len(set(values)) == 1


def any_equal(records):
    return name_mistake(records, lambda values: len(set(values)) < len(values))


def images_may_not_differ(records):
    return name_mistake(records, lambda values: len(set(values)) > 1)


def looks_at_the_end(records):
    order = ("steps", "images", "at_start", "at_end")
    name = name_mistake(records, all_equal, order)
    return "gradients" if name == "at_end" else name


def images_first(records):
    return name_mistake(records, all_equal, ("images", "steps", "at_start", "after_first"))


def the_first_two_ranks(records):
    return name_mistake(records[:2], all_equal)


def never_none(records):
    return name_mistake(records, all_equal) or "gradients"


WRONG = {
    "10.2": [
        (any_equal, "Here they read two different sets"),
        (images_may_not_differ, "Only the hash of the images differs"),
        (looks_at_the_end, "so the gradients were averaged"),
        (images_first, "The first of the list counts"),
        (the_first_two_ranks, "not only two"),
        (never_none, "good training"),
    ],
    "10.1": [
        (parses_every_line, "Some lines are not JSON"),
        (number_of_interruptions, "Subtract the step"),
        (from_the_highest, "the highest step of the whole log"),
        (counts_lines, "Count steps, not lines"),
        (as_a_text, "return a whole number"),
    ],
    "10.3": [
        (blames_the_many, "show the symptom, not the cause"),
        (outermost, "first frame of a rank"),
        (the_rank_alone, "Return two things"),
        (as_it_was_read, "The rank is a number"),
        (always_somebody, "nobody stands out"),
        (zero_is_nobody, "0 is a rank"),
        (only_not_all_reduce, "A rank is elsewhere"),
        (who_is_not_in_all_reduce, "all but rank 2 .* not the cause"),
        (one_digit, "rank 11 of 12 .*two digits"),
    ],
    "10.4": [
        (in_place, "Write to another name"),
        (lambda *given: renamed(*given, clean=False), "is left in the folder"),
        (lambda *given: renamed(*given, swallow=True), "did not come out"),
        (lambda *given: renamed(*given, fsync="never"), "os.fsync"),
        (
            lambda *given: renamed(*given, fsync="too early"),
            "When all is written, flush, then os.fsync",
        ),
        (lambda *given: (renamed(*given, fsync="never"), os.sync()), "os.fsync.that file"),
        (lambda *given: renamed(*given, flush=False), "When all is written, flush"),
        (lambda *given: renamed(*given, fsync="too late"), "First os.fsync, then rename"),
        (elsewhere, "own folder"),
    ],
}


def data_alone(path, chunks):
    """The size is data enough: fdatasync writes it, too."""
    partial = Path(f"{path}.new")
    try:
        with partial.open("wb") as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fdatasync(stream.fileno())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


RIGHT = {"10.4": [data_alone]}
