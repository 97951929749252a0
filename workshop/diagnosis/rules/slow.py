"""Trainings that are slow, in the terms of the course: compute, wait, communication, data."""

from __future__ import annotations

import itertools
import linecache
import re
import statistics
from collections import Counter, defaultdict

from workshop.diagnosis.evidence import Evidence, Place, Rank, is_script, show_place
from workshop.diagnosis.rules.collectives import hang_of
from workshop.diagnosis.rules.rule import Cases, rule
from workshop.diagnosis.steps import Steps, step_seconds, step_times
from workshop.launch.delayed_link import DEVICE

SLOW_WAIT = 0.25  # of a step, that the other ranks wait for the straggler
SLOW_DATA = 0.3  # of a step
SLOW_EXCHANGE = 0.5  # of a step
LARGE_BYTES = 1 << 20  # per step; less is no reason to ask for a wider link
MIN_SECONDS = 1.0  # of steps, for shares that are counted in samples
TINY_BYTES, TINY_COUNT = 64 << 10, 12  # a collective this small mostly pays its latency
TINY_SHARE = 0.05  # of a step; if they take less, nothing is gained
MIN_GROWING, GROWTH, RISE = 15, 2.0, 1.2  # steps; last by first third; each by the one before
MAX_SHAPES = 200  # that a recorder notes of an optimizer
GROWN_WITHIN = 0.6  # of the growth; on a machine that gets busier all functions take longer
MIN_STEP = 0.008  # s; below it a step is too short for its parts to mean anything


@rule(
    "slow input",
    "Use num_workers and prefetching, cheaper transforms, fewer and larger files; keep workers "
    "over epochs (persistent_workers=True).",
)
def slow_input(evidence: Evidence) -> Cases:
    """Also if a few steps wait long, as where each epoch starts its workers anew."""
    steps = step_times(evidence)
    steps = steps if steps and steps.mean > MIN_STEP else None
    worst = max(steps.of_ranks, key=lambda row: row.data) if steps else None
    if steps and worst and worst.data > SLOW_DATA and steps.count * steps.mean > MIN_SECONDS:
        rank = evidence.rank(worst.rank)
        line = _busiest(rank, only="data")
        yield (
            f"rank {worst.rank} at {line}: {worst.data:.0%} of the time it waits for data",
            f"a step takes {_ms(worst.seconds)} in the median, {_ms(steps.mean)} in the mean, and "
            "data come more slowly than they are used",
        )


RETRACED = re.compile(
    r"out of the last \d+ calls to <function (\S+ at \w+)> triggered tf.function retr"
)


@rule(
    "traced again in each step",
    "Pass tensors of one shape and type (tf.constant(step), padded batches), no Python numbers; or "
    "give tf.function an input_signature or reduce_retracing=True; make it once, outside the loop.",
)
def retraced(evidence: Evidence) -> Cases:
    """TensorFlow says so after the fifth time in a few calls, and twice if it goes on."""
    matches = [match for line in evidence.lines if (match := RETRACED.search(line.text))]
    for function, count in Counter(match[1] for match in matches).most_common(1):
        if count > 1:
            name = function.partition(" at ")[0]
            yield f"{name}, as the log says", "TensorFlow makes a new graph of it in each call"


@rule(
    "straggler",
    "Compare that rank with the others: has it more or longer data, work that only it does, a "
    "slower instance, or another process on its cores?",
)
def straggler(evidence: Evidence) -> Cases:
    """All but one rank wait: in most steps, and in all parts of the run for the same one."""
    steps = _slow(evidence)
    if steps:
        slowest = min(steps.of_ranks, key=lambda row: row.wait)
        waits = [row.wait for row in steps.of_ranks if row is not slowest]
        shares = [row.wait / row.seconds for row in steps.of_ranks if row is not slowest]
        if slowest.last > 0.5 and min(shares) > SLOW_WAIT and min(waits) > 3 * slowest.wait:
            rank = evidence.rank(slowest.rank)
            yield (
                f"rank {slowest.rank}, mostly at {_busiest(rank)}",
                f"the others wait {_ms(min(waits))} of each step's {_ms(slowest.seconds)} for it",
            )


@rule(
    "steps get slower and slower",
    "See what that line keeps from step to step: a metric's state, all outputs so far, losses with "
    "their graph (keep loss.item()). Empty it, or compute it less often.",
)
def slower_and_slower(evidence: Evidence) -> Cases:
    """From the first third of the run to the second, and again to the last."""
    steps = _slow(evidence)
    if not steps or steps.count < MIN_GROWING:
        return
    row = min(steps.of_ranks, key=lambda row: row.wait)
    third = len(row.ended) // 3
    parts = row.ended[: third + 1], row.ended[third:-third], row.ended[-third - 1 :]
    first, middle, last = map(step_seconds, parts)
    if last > GROWTH * first and middle > RISE * first and last > RISE * middle:
        line, growth = _grown_most(evidence.rank(row.rank), parts[0], parts[2])
        if growth > GROWN_WITHIN * (last - first):
            yield (
                f"rank {row.rank} is at {line} for longer and longer",
                f"a step took {_ms(first)} in the first third of the run, then {_ms(middle)}, and "
                f"{_ms(last)} in the last",
            )


@rule(
    "oversubscribed cores",
    "Give each rank its share: torch.set_num_threads or OMP_NUM_THREADS = cores / ranks.",
)
def oversubscribed(evidence: Evidence) -> Cases:
    hosts: dict[str, list[Rank]] = {}
    for rank in evidence.ranks:
        hosts.setdefault(rank.note.get("host", ""), []).append(rank)
    for host, ranks in hosts.items() if _slow(evidence) else ():
        cores = max(rank.note.get("cores", 0) for rank in ranks)
        threads = sum(rank.note.get("threads", 0) for rank in ranks)
        if cores and threads >= 3 * cores and threads > len(ranks):
            yield (
                f"{len(ranks)} ranks on {host} with {threads} threads for {cores} cores",
                "the ranks' threads take the cores from each other",
            )


@rule(
    "tiny buckets",
    "Exchange fewer, larger tensors: DDP's bucket_cap_mb (25 by default), Horovod's fusion "
    "threshold, one flat tensor instead of one per parameter.",
)
def tiny_buckets(evidence: Evidence) -> Cases:
    steps = _slow(evidence)
    if steps and steps.collectives >= TINY_COUNT:
        each = steps.bytes / steps.collectives
        shares = [(row.communication + row.wait) / row.seconds for row in steps.of_ranks]
        if each < TINY_BYTES and max(shares) > TINY_SHARE:
            yield (
                f"{steps.collectives} collectives per step, of {each / 1024:.1f} KiB on average",
                "each pays its latency, and little is sent",
            )


@rule(
    "gradients are averaged several times",
    "Register each hook once (keep the parameters that have one, or remove the handles); where "
    "gradients accumulate, exchange them after the last small batch only (DDP: no_sync() around "
    "the others).",
)
def averaged_again(evidence: Evidence) -> Cases:
    """Between two steps, far more calls than there are gradients, in hooks of a script's own, or
    twice as many as DDP has buckets.
    """
    for rank in evidence.ranks[:1]:
        optimizers, models = (rank.objects.get(name, []) for name in ("optimizers", "models"))
        gradients = sum(len(optimizer["shapes"]) for optimizer in optimizers)
        buckets = sum(len(m["buckets"].split(",")) for m in models if m["buckets"])
        calls = [call for call in rank.collectives if call.in_backward]
        since = calls[0].created if calls else 0.0  # earlier ones may have been forgotten
        steps = [when for when in rank.note.get("stepped_at", []) if when > since]
        counts = [sum(a < c.created < b for c in calls) for a, b in itertools.pairwise(steps)]
        count = statistics.median(counts or [0])
        if rank.note.get("ddp"):
            often = count >= 2 * buckets > 0
            reason = f"DDP needs {buckets}: it exchanges each of several small batches"
        else:
            often = 0 < gradients < MAX_SHAPES and count >= max(2 * gradients, TINY_COUNT)
            reason = f"there are {gradients} gradients: a hook was registered again, or each of "
            reason += "several small batches is exchanged"
        if often:
            where = f"rank {rank.number}: {count:.0f} calls in backward at"
            yield f"{where} {show_place(calls[-1].place)} before a step of the optimizer", reason


@rule(
    "narrow link",
    "Send less (half precision, PowerSGD) or less often (accumulate, local SGD); overlap it with "
    "backward; instances with a faster network, in one placement.",
)
def narrow_link(evidence: Evidence) -> Cases:
    """Between hosts, or where a link is known to be limited: memory is no narrow link."""
    steps = _slow(evidence)
    notes = [rank.note for rank in evidence.ranks]
    limited = any(note.get("paced") or _is_delayed(note) for note in notes)
    if steps and (limited or len({note.get("host") for note in notes}) > 1):
        row = max(steps.of_ranks, key=lambda row: row.communication)
        if row.communication > SLOW_EXCHANGE * row.seconds and steps.bytes > LARGE_BYTES:
            rate = steps.bytes / row.communication / 1e6
            yield (
                f"rank {row.rank}: {_ms(row.communication)} of {_ms(row.seconds)} per step",
                f"{steps.bytes / 1e6:.1f} MB per step arrive at {rate:.0f} MB/s, not overlapped",
            )


def _is_delayed(note: dict) -> bool:
    """Whether workshop.launch.delayed_link has made the link by which a rank sends."""
    return note.get("variables", {}).get("OMPI_MCA_btl_tcp_if_include") == DEVICE


def _slow(evidence: Evidence) -> Steps | None:
    """The step times, of steps long enough for their parts to mean anything; not of a hang."""
    steps = None if hang_of(evidence) else step_times(evidence)
    return steps if steps and max(row.seconds for row in steps.of_ranks) > MIN_STEP else None


def _grown_most(rank: Rank | None, first: list[float], last: list[float]) -> tuple[str, float]:
    """The function of a rank's own work in which it stays longer in the last steps than in the
    first, at its line that grew most, and by how many seconds per step. first, last: Unix times of
    the steps' ends.
    """
    seconds: defaultdict[Place, float] = defaultdict(float)
    for sign, ended in ((-1, first), (1, last)):
        seen = rank.samples(ended[0], ended[-1]) if rank else Counter()
        step = (ended[-1] - ended[0]) / (len(ended) - 1) / (seen.total() or 1)
        for (activity, file, line, function), count in seen.items():
            place = file, line, function
            # In backward a rank also waits for the others' gradients. Objects are pickled.
            objects = "_object" in linecache.getline(file, line)
            works = activity not in ("communication", "backward") or objects
            if works and is_script(place):
                seconds[place] += sign * count * step
    functions: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (file, _, name), growth in seconds.items():
        functions[file, name] += growth
    if not functions:
        return "an unknown line", 0.0
    most = max(functions, key=functions.__getitem__)
    lines = [place for place in seconds if (place[0], place[2]) == most]
    return show_place(max(lines, key=seconds.__getitem__)), functions[most]


def _busiest(rank: Rank | None, only: str = "") -> str:
    """The line at which a rank was seen most often, outside of collectives."""
    seen = rank.samples() if rank else Counter()
    for (activity, *place), _ in seen.most_common():
        if only in ("", activity) and activity != "communication" and is_script(tuple(place)):
            return show_place(tuple(place))
    return "an unknown line"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"
