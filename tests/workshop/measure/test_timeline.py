"""Reading a Horovod Timeline. The real one is read in lesson 04's test; this is about its form."""

import json

import pytest

from workshop.measure import timeline
from workshop.measure.timeline import NoTimeline

LONG = "DistributedGradientTape_Allreduce/cond_6/then/_48/HorovodAllreduce_gradient_tape_sequential"
NAMES = {
    1: f"{LONG}_dense_1_MatMul_MatMul_1_0",
    2: f"{LONG}_conv2d_BiasAdd_BiasAddGrad_0",
    3: "mean",
}


def one_allreduce(tensor, at, shape="[64, 10]"):
    """What Horovod writes for one tensor, times in microseconds."""
    steps = [("NEGOTIATE_ALLREDUCE", 0, 1500)]
    inner = [("MEMCPY_IN_FUSION_BUFFER", 1600, 10), ("MPI_ALLREDUCE", 1610, 2000)]
    yield {"ph": "B", "name": steps[0][0], "ts": at, "pid": tensor}
    yield {"ph": "X", "name": "0", "ts": at + 1, "pid": tensor, "dur": 0}
    yield {"ph": "E", "ts": at + 1500, "pid": tensor}
    yield {"ph": "B", "name": "ALLREDUCE", "ts": at + 1550, "pid": tensor}
    for name, start, micros in inner:
        yield {"ph": "B", "name": name, "ts": at + start, "pid": tensor}
        yield {"ph": "E", "ts": at + start + micros, "pid": tensor}
    arguments = {"dtype": "float32", "shape": shape}
    yield {"ph": "E", "ts": at + 3700, "pid": tensor, "args": arguments}


@pytest.fixture
def trace(tmp_path):
    """Three steps of two gradients, and a metric after the last."""
    events = [{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time": 1}}]
    for number, name in NAMES.items():
        events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}})
    for step in range(3):
        for tensor in (1, 2):
            events += one_allreduce(tensor, 7_000_000 + 10_000 * step + tensor)
    events += one_allreduce(3, 7_040_000, "[]")
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(events))
    return path


def test_tensors_steps_phases_and_milliseconds(trace):
    table = timeline.read(trace)
    assert set(table["tensor"]) == {"dense_1 kernel", "conv2d bias", "mean"}
    assert len(table) == 7 * 3 and table["start_ms"].min() == 0
    row = table[(table["tensor"] == "dense_1 kernel") & (table["step"] == 2)].set_index("phase")
    assert list(row.index) == ["negotiate", "copy in", "all-reduce"]
    assert row["ms"].tolist() == pytest.approx([1.5, 0.01, 2.0])
    assert row["start_ms"].tolist() == pytest.approx([10.0, 11.6, 11.61])


def test_one_step_has_the_gradients_alone(trace):
    step = timeline.read(trace, step=3)
    assert set(step["tensor"]) == {"dense_1 kernel", "conv2d bias"}
    assert step["start_ms"].min() == 0 and len(step) == 6
    with pytest.raises(ValueError, match="no step 4; it has 1 to 3"):
        timeline.read(trace, step=4)


@pytest.mark.parametrize("cut", [1, 30, 400])
def test_an_unfinished_file_is_read_as_far_as_it_goes(trace, cut):
    whole = timeline.read(trace)
    trace.write_text(trace.read_text()[:-cut])
    table = timeline.read(trace)
    assert len(whole) - 6 <= len(table) <= len(whole)
    assert table.iloc[0].to_dict() == whole.iloc[0].to_dict()


def test_the_stand_ins_trace(tmp_path):
    path = tmp_path / "torch.json"
    events = [{"name": "aten::add", "ph": "X", "ts": 1, "dur": 5}]
    for number in range(17):  # two steps of eight, and a metric
        at = 1000.0 * number
        events.append({"name": "gloo:all_reduce", "ph": "X", "ts": at, "dur": 250.0})
    path.write_text(json.dumps({"traceEvents": events}))
    step = timeline.read(path, step=2)
    assert step["tensor"].tolist() == [f"tensor {n}" for n in range(1, 9)]
    assert set(step["ms"]) == {0.25} and set(step["phase"]) == {"all-reduce"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "Set HOROVOD_TIMELINE"),
        ("", "is not a timeline"),
        ("nonsense", "is not a timeline"),
        ("[]", "holds no all-reduce"),
        ('{"a": 1}', "is not a timeline"),
    ],
)
def test_what_is_no_timeline_says_what_to_do(tmp_path, text, message):
    path = tmp_path / "timeline.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(NoTimeline, match=message):
        timeline.read(path)


def ranks_ready(tensor, at, ready, ends):
    """What Horovod writes for one tensor of several ranks; times in microseconds."""
    yield {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": at + min(ready), "pid": tensor}
    for rank, when in enumerate(ready):
        yield {"ph": "X", "name": str(rank), "ts": at + when, "pid": tensor, "dur": 0}
    yield {"ph": "E", "ts": at + max(ready), "pid": tensor}
    yield {"ph": "B", "name": "ALLREDUCE", "ts": at + max(ready) + 100, "pid": tensor}
    yield {"ph": "E", "ts": at + ends, "pid": tensor}


@pytest.fixture
def two_ranks(tmp_path):
    """Three steps of 10 ms of two ranks: rank 1 has its gradients 2 ms after rank 0."""
    events = []
    for step in range(3):
        at = 5_000_000 + 10_000 * step
        events += ranks_ready(1, at, (3000, 5000), 7000)
        events += ranks_ready(2, at, (4000, 6000), 9000)
    events += ranks_ready(3, 5_040_000, (0, 0), 500)  # a metric, once
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(events))
    return path


def test_each_rank_computes_waits_and_communicates(two_ranks):
    table = timeline.by_rank(two_ranks)
    assert sorted(set(table["step"])) == [2, 3], "nobody knows when the first step began"
    for step in (2, 3):
        rows = table[table["step"] == step].set_index(["rank", "kind"])["ms"].to_dict()
        # A step begins where the one before ended, 1 ms before this one's events.
        assert rows == pytest.approx(
            {
                (0, "compute"): 5.0,
                (0, "wait"): 1.1,
                (0, "communicate"): 3.9,
                (1, "compute"): 7.0,
                (1, "communicate"): 3.9,
            }
        ), "all-reduces that overlap are one span"


def test_a_timeline_that_does_not_say_who_was_ready_says_what_to_do(two_ranks, tmp_path):
    events = [event for event in json.loads(two_ranks.read_text()) if event["ph"] != "X"]
    path = tmp_path / "cached.json"
    path.write_text(json.dumps(events))
    with pytest.raises(NoTimeline, match="with HOROVOD_CACHE_CAPACITY=0"):
        timeline.by_rank(path)
