"""Read a Horovod Timeline: which tensor was where, from when, for how long.

    HOROVOD_TIMELINE=/tmp/trace.json mpirun -np 2 python train.py

Rank 0 writes the file, in the format of Chrome's tracing page. `read` makes a table of it. It
also reads the trace that scripts/demos/train_torch_steps.py writes where Horovod is missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
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

    Columns: tensor; step, from 1 (the how-manieth all-reduce of that tensor); phase, one of
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
    raise NoTimeline(f"{path.name} is no timeline, or it is empty. Run the script again.")


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
