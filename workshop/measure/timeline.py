"""Read a Horovod Timeline: which tensor was where, from when, for how long.

    HOROVOD_TIMELINE=/tmp/trace.json mpirun -np 2 python train.py

Rank 0 writes the file, in the format of Chrome's tracing page. `read` makes a table of it. It
also reads the trace that scripts/demos/train_torch_steps.py writes where Horovod is missing.
`by_rank` says of each rank how long it computed and waited.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

NEGOTIATE, COPY_IN, REDUCE, COPY_OUT = "negotiate", "copy in", "all-reduce", "copy out"
PHASES = (NEGOTIATE, COPY_IN, REDUCE, COPY_OUT)
_NAMES = {
    "NEGOTIATE_ALLREDUCE": NEGOTIATE,
    "MEMCPY_IN_FUSION_BUFFER": COPY_IN,
    "MPI_ALLREDUCE": REDUCE,
    "NCCL_ALLREDUCE": REDUCE,
    "GLOO_ALLREDUCE": REDUCE,
    "MEMCPY_OUT_FUSION_BUFFER": COPY_OUT,
}
_GRADIENT = re.compile(r"gradient_tape_(?:[a-z]+_)*?((?:conv2d|dense)(?:_\d+)?)_(\w+?)_\d+$")
TORCH_TENSORS = 8  # of the model in scripts/demos/common/model_torch.py: four layers, two each


class NoTimeline(Exception):
    """The file is missing, empty or no timeline; the message says what to do."""


@dataclass
class _AllReduce:
    """One tensor's all-reduce in one step; times in microseconds.

    step: from 1, which all-reduce of that tensor it is. phases: (phase, start, end). ready: when
    each rank had the tensor, as far as the file says it.
    """

    tensor: str
    step: int
    start: float = 0.0
    end: float = 0.0
    phases: list[tuple[str, float, float]] = field(default_factory=list)
    ready: dict[int, float] = field(default_factory=dict)


def read(path: Path | str, step: int | None = None) -> pd.DataFrame:
    """A row for each phase of each all-reduce, in order of time.

    Columns: tensor; step, from 1 (which all-reduce of that tensor it is); phase, one of
    PHASES; start_ms, since the first of them; ms.

    Args:
        step: that one only, with the tensors of the model. (Metrics are all-reduced too, but not
            in every step.)

    A file that a killed run did not finish is read as far as it goes. Raises NoTimeline, and
    ValueError for a step that the file does not have.
    """
    all_reduces = _all_reduces(Path(path))
    if step is not None:
        last = max(all_reduce.step for all_reduce in all_reduces)
        all_reduces = [each for each in _model_all_reduces(all_reduces) if each.step == step]
        if not all_reduces:
            raise ValueError(f"The timeline has no step {step}; it has 1 to {last}.")
    rows = [
        (all_reduce.tensor, all_reduce.step, phase, start / 1000, (end - start) / 1000)
        for all_reduce in all_reduces
        for phase, start, end in all_reduce.phases
    ]
    table = pd.DataFrame(rows, columns=["tensor", "step", "phase", "start_ms", "ms"])
    table = table.sort_values("start_ms", kind="stable", ignore_index=True)
    table["start_ms"] -= table["start_ms"].min()
    return table


def by_rank(path: Path | str) -> pd.DataFrame:
    """What each rank did in each step, in order of time.

    Columns: step, from 2 (nobody knows when the first began); rank; kind; start_ms, since the end
    of the step before; ms. The kinds: "compute", until the rank's last gradient was ready; "wait",
    from then on, while no all-reduce ran; "communicate", while all-reduces ran, which may be at the
    same time as "compute".

    Horovod's rank 0 notes when each rank was ready; with its cache it does so in the first step
    alone, so run it with HOROVOD_CACHE_CAPACITY=0. The trace of train_torch_steps.py knows rank 0
    alone, which stops computing as soon as its first all-reduce begins.
    Raises NoTimeline as `read` does, and where there are no two steps of which that is known.
    """
    steps: dict[int, list[_AllReduce]] = defaultdict(list)
    for all_reduce in _model_all_reduces(_all_reduces(Path(path))):
        steps[all_reduce.step].append(all_reduce)
    ends = {step: max(each.end for each in of_step) for step, of_step in steps.items()}
    rows = []
    for step in sorted(steps):
        if step - 1 not in steps:
            continue
        began = ends[step - 1]
        ready: dict[int, float] = {}  # by rank, when its last gradient was
        for all_reduce in steps[step]:
            for rank, at in all_reduce.ready.items():
                ready[rank] = max(at, ready.get(rank, at))
        spans = _merged([(all_reduce.start, all_reduce.end) for all_reduce in steps[step]])
        for rank, at in sorted(ready.items()):
            rows.append((step, rank, "compute", began, at))
            for start, end in spans:
                if start > at:
                    rows.append((step, rank, "wait", at, start))
                rows.append((step, rank, "communicate", start, end))
                at = max(at, end)
    if not rows:
        raise NoTimeline(
            f"{Path(path).name} does not say of two steps in a row when each rank was ready. Train "
            "at least two steps, with HOROVOD_CACHE_CAPACITY=0."
        )
    table = pd.DataFrame(rows, columns=["step", "rank", "kind", "start", "end"])
    start_ms = (table["start"] - table["step"].sub(1).map(ends)) / 1000
    ms = (table["end"] - table["start"]) / 1000
    return table[["step", "rank", "kind"]].assign(start_ms=start_ms, ms=ms)


def _model_all_reduces(all_reduces: list[_AllReduce]) -> list[_AllReduce]:
    """Without metrics, which are all-reduced in fewer steps than most tensors."""
    last: Counter[str] = Counter()
    for all_reduce in all_reduces:
        last[all_reduce.tensor] = max(last[all_reduce.tensor], all_reduce.step)
    frequency = Counter(last.values())
    usual = max(frequency, key=lambda step: (frequency[step], step), default=0)
    return [all_reduce for all_reduce in all_reduces if last[all_reduce.tensor] >= usual]


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans that overlap, or touch, as one."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _all_reduces(path: Path) -> list[_AllReduce]:
    events = _events(path)
    if isinstance(events, list):
        all_reduces = _from_horovod(events)
    else:
        all_reduces = _from_torch(events["traceEvents"])
    if not all_reduces:
        raise NoTimeline(f"{path.name} holds no all-reduce: did the ranks train a step?")
    return all_reduces


def _events(path: Path):
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise NoTimeline(
            f"There is no timeline {path.name}. Set HOROVOD_TIMELINE to a file's whole path "
            "before mpirun starts; rank 0 writes it."
        ) from error
    # An unfinished file ends in the middle: cut it after the last whole event.
    for attempt in (text, text.rstrip(",") + "]", text[: text.rfind("},") + 1] + "]"):
        try:
            events = json.loads(attempt)
        except ValueError:
            continue
        if isinstance(events, list) or (isinstance(events, dict) and "traceEvents" in events):
            return events
    raise NoTimeline(f"{path.name} is not a timeline, or it is empty. Run the script again.")


def _from_horovod(events: list[dict]) -> list[_AllReduce]:
    """Each tensor is a "process" of the trace; its phases are nested begin and end events.

    A rank that is ready is an event with the rank's number as its name.
    """
    names: dict[int, str] = {}
    open_phases: dict[int, list[dict]] = defaultdict(list)
    current: dict[int, _AllReduce] = {}
    steps: Counter[int] = Counter()
    finished = []
    for event in events:
        kind, process = event.get("ph"), event.get("pid", 0)
        if kind == "M" and event["name"] == "process_name" and "name" in event["args"]:
            names[process] = _short(event["args"]["name"])
        elif kind == "B":
            open_phases[process].append(event)
            if event["name"] == "NEGOTIATE_ALLREDUCE":
                steps[process] += 1
                tensor = names.get(process, f"tensor {process}")
                current[process] = _AllReduce(tensor, steps[process])
        elif kind == "X" and event["name"].isdigit() and process in current:
            current[process].ready[int(event["name"])] = event["ts"]
        elif kind == "E" and open_phases[process]:
            began = open_phases[process].pop()
            all_reduce = current.get(process)
            if all_reduce and began["name"] in _NAMES:
                all_reduce.phases.append((_NAMES[began["name"]], began["ts"], event["ts"]))
            elif all_reduce and began["name"] == "ALLREDUCE":
                all_reduce.start, all_reduce.end = began["ts"], event["ts"]
                finished.append(current.pop(process))
    return finished


def _from_torch(events: list[dict]) -> list[_AllReduce]:
    """Gloo's all-reduces, of rank 0, have no names: number them. Each step has eight."""
    sent = [event for event in events if event.get("name") == "gloo:all_reduce"]
    sent.sort(key=lambda event: event["ts"])
    all_reduces = []
    for number, event in enumerate(sent):
        step, tensor = divmod(number, TORCH_TENSORS)
        start, end = event["ts"], event["ts"] + event["dur"]
        ready = {0: sent[step * TORCH_TENSORS]["ts"]}
        all_reduces.append(
            _AllReduce(f"tensor {tensor + 1}", step + 1, start, end, [(REDUCE, start, end)], ready)
        )
    return all_reduces


def _short(name: str) -> str:
    """dense_1 kernel, for a gradient with TensorFlow's long name; others lose their folders."""
    last = name.rsplit("/", 1)[-1]
    if match := _GRADIENT.search(last):
        return f"{match[1]} {'bias' if 'Bias' in match[2] else 'kernel'}"
    return last
