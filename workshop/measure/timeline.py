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
from dataclasses import dataclass
from pathlib import Path

NEGOTIATE, COPY_IN, REDUCE, COPY_OUT = "negotiate", "copy in", "all-reduce", "copy out"
PHASES = (NEGOTIATE, COPY_IN, REDUCE, COPY_OUT)
_NAMES = {
    "NEGOTIATE_ALLREDUCE": NEGOTIATE,
    "MEMCPY_IN_FUSION_BUFFER": COPY_IN,
    "MPI_ALLREDUCE": REDUCE,
    "NCCL_ALLREDUCE": REDUCE,
    "GLOO_ALLREDUCE": REDUCE,
    "MEMCPY_OUT_FUSION_BUFFER": COPY_OUT,
    "gloo:all_reduce": REDUCE,
}
_GRADIENT = re.compile(r"gradient_tape_(?:[a-z]+_)*?((?:conv2d|dense)(?:_\d+)?)_(\w+?)_\d+$")


class NoTimeline(Exception):
    """The file is missing, empty or no timeline; the message says what to do."""


def read(path: Path | str, step: int | None = None):
    """A pandas table, a row for each phase of each all-reduce, in order of time.

    Columns: tensor; step, from 1 (which all-reduce of that tensor it is); phase, one of
    PHASES; start_ms, since the first of them; ms.

    Args:
        step: that one only, with the tensors of the model. (Metrics are all-reduced too, but not
            in every step.)

    A file that a killed run did not finish is read as far as it goes. Raises NoTimeline, and
    ValueError for a step that the file does not have.
    """
    import pandas as pd

    events = _events(Path(path))
    rows = _from_horovod(events) if isinstance(events, list) else _from_torch(events)
    if not rows:
        raise NoTimeline(f"{Path(path).name} holds no all-reduce: did the ranks train a step?")
    table = pd.DataFrame(rows).sort_values("start_ms", kind="stable", ignore_index=True)
    if step is not None:
        last = table.groupby("tensor")["step"].max()
        model = last.index[last >= last.mode().max()]
        found = table[(table["step"] == step) & table["tensor"].isin(model)]
        if found.empty:
            raise ValueError(f"The timeline has no step {step}; it has 1 to {table['step'].max()}.")
        table = found.reset_index(drop=True)
    table["start_ms"] -= table["start_ms"].min()
    return table


def by_rank(path: Path | str):
    """A pandas table of what each rank did in each step, in order of time.

    Columns: step, from 2 (nobody knows when the first began); rank; kind; start_ms, since the end
    of the step before; ms. The kinds: "compute", until the rank's last gradient was ready; "wait",
    from then until the last all-reduce ended; "communicate", while all-reduces ran, which may be
    at the same time as the other two.

    Horovod's rank 0 notes when each rank was ready; with its cache it does so in the first step
    alone, so run it with HOROVOD_CACHE_CAPACITY=0. The trace of train_torch_steps.py knows rank 0
    alone, which stops computing as soon as its first all-reduce begins.
    Raises NoTimeline as `read` does, and where there are no two steps of which that is known.
    """
    import pandas as pd

    events = _events(Path(path))
    reduced = _reduced(events) if isinstance(events, list) else _reduced_by_torch(events)
    steps: dict[int, list[_Reduced]] = defaultdict(list)
    last = Counter({one.tensor: one.step for one in sorted(reduced, key=lambda one: one.step)})
    usual = max(Counter(last.values()).items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    for one in reduced:
        if last[one.tensor] >= usual[0]:  # a gradient of the model, and no metric
            steps[one.step].append(one)
    rows = []
    for step in sorted(steps)[1:]:
        if step - 1 not in steps:
            continue
        began = max(one.end for one in steps[step - 1])
        ended = max(one.end for one in steps[step])
        spans = _merged([(one.start, one.end) for one in steps[step]])
        for rank in sorted({rank for one in steps[step] for rank in one.ready}):
            ready = max(one.ready[rank] for one in steps[step] if rank in one.ready)
            found = [("compute", began, ready), ("wait", ready, ended)]
            found += [("communicate", *span) for span in spans]
            rows += [
                {
                    "step": step,
                    "rank": rank,
                    "kind": kind,
                    "start_ms": (start - began) / 1000,
                    "ms": (end - start) / 1000,
                }
                for kind, start, end in found
            ]
    if not rows:
        raise NoTimeline(
            f"{Path(path).name} does not say of two steps in a row when each rank was ready. Train "
            "at least two steps, with HOROVOD_CACHE_CAPACITY=0."
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Reduced:
    """One tensor's all-reduce in one step, microseconds. ready: when each rank had it."""

    tensor: str
    step: int
    ready: dict[int, float]
    start: float
    end: float


def _reduced(events: list[dict]) -> list[_Reduced]:
    """From Horovod's events. It notes a rank that is ready as an event with the rank's number."""
    count: Counter = Counter()
    ready: dict[int, dict[int, float]] = defaultdict(dict)
    open_phases: dict[int, list[dict]] = defaultdict(list)
    found = []
    for event in events:
        kind, tensor = event.get("ph"), event.get("pid")
        if kind == "X" and event["name"].isdigit():
            ready[tensor][int(event["name"])] = event["ts"]
        elif kind == "B":
            open_phases[tensor].append(event)
            if event["name"] == "NEGOTIATE_ALLREDUCE":
                count[tensor] += 1
                ready[tensor] = {}
        elif kind == "E" and open_phases[tensor]:
            began = open_phases[tensor].pop()
            if began["name"] == "ALLREDUCE":
                span = began["ts"], event["ts"]
                found.append(_Reduced(str(tensor), count[tensor], ready[tensor], *span))
    return found


def _reduced_by_torch(trace: dict) -> list[_Reduced]:
    """From torch's events, of rank 0: each step of the script has eight all-reduces."""
    found = [one for one in trace["traceEvents"] if one.get("name") == "gloo:all_reduce"]
    found.sort(key=lambda one: one["ts"])
    rows = []
    for number, one in enumerate(found):
        step, tensor = divmod(number, TORCH_TENSORS)
        ready = {0: found[step * TORCH_TENSORS]["ts"]}
        rows.append(_Reduced(str(tensor), step + 1, ready, one["ts"], one["ts"] + one["dur"]))
    return rows


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans that overlap, or touch, as one."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


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
            found = json.loads(attempt)
        except ValueError:
            continue
        if isinstance(found, list) or (isinstance(found, dict) and "traceEvents" in found):
            return found
    raise NoTimeline(f"{path.name} is not a timeline, or it is empty. Run the script again.")


def _from_horovod(events: list[dict]) -> list[dict]:
    """Each tensor is a "process" of the trace; its phases are nested begin and end events."""
    names: dict[int, str] = {}
    open_phases: dict[int, list[dict]] = defaultdict(list)
    count: Counter = Counter()
    rows: list[dict] = []
    current: dict[int, list[dict]] = defaultdict(list)
    for event in events:
        kind, tensor = event.get("ph"), event.get("pid")
        if kind == "M" and event["name"] == "process_name" and "name" in event["args"]:
            names[tensor] = _short(event["args"]["name"])
        elif kind == "B":
            open_phases[tensor].append(event)
            count[tensor] += event["name"] == "NEGOTIATE_ALLREDUCE"
        elif kind == "E" and open_phases[tensor]:
            began = open_phases[tensor].pop()
            if began["name"] in _NAMES:
                row = _row(names.get(tensor, "?"), count[tensor], began, event["ts"])
                current[tensor].append(row)
            elif began["name"] == "ALLREDUCE":
                rows += current.pop(tensor, [])
    return rows


def _row(tensor: str, step: int, began: dict, end: float) -> dict:
    return {
        "tensor": tensor,
        "step": step,
        "phase": _NAMES[began["name"]],
        "start_ms": began["ts"] / 1000,
        "ms": (end - began["ts"]) / 1000,
    }


def _from_torch(trace: dict) -> list[dict]:
    """Gloo's all-reduces have no names: number them. Each step of the script has eight."""
    found = [one for one in trace["traceEvents"] if one.get("name") == "gloo:all_reduce"]
    rows = []
    for number, one in enumerate(sorted(found, key=lambda one: one["ts"])):
        step, tensor = divmod(number, TORCH_TENSORS)
        rows.append(_row(f"tensor {tensor + 1}", step + 1, one, one["ts"] + one["dur"]))
    return rows


TORCH_TENSORS = 8  # of the model in scripts/demos/common/model_torch.py: four layers, two each


def _short(name: str) -> str:
    """dense_1 kernel, for a gradient with TensorFlow's long name; others lose their folders."""
    last = name.rsplit("/", 1)[-1]
    if found := _GRADIENT.search(last):
        return f"{found[1]} {'bias' if 'Bias' in found[2] else 'kernel'}"
    return last
