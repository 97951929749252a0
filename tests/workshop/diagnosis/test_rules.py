"""The rules on recorded evidence, which record.py renews, and on altered copies of it."""

from pathlib import Path

import pytest
from record import NAMES, RECORDED, load

from workshop.diagnosis.answer import Answer
from workshop.diagnosis.evidence import Collective, Evidence, Rank
from workshop.diagnosis.rules import find
from workshop.diagnosis.rules.collectives import branch_of
from workshop.diagnosis.rules.errors import ERRORS
from workshop.diagnosis.steps import step_times
from workshop.failures import ALL
from workshop.launch.processes import Line

HERE = Path(__file__).parent
TRAIN = ("/a/train.py", 7, "train")
RECV = ("/v/site-packages/torch/distributed/distributed_c10d.py", 9, "recv")
WRAPPER = ("/v/site-packages/torch/distributed/c10d_logger.py", 9, "wrapper")
HOROVOD = ("/v/site-packages/horovod/torch/mpi_ops.py", 9, "synchronize")
BACKWARD = ("/v/site-packages/torch/autograd/graph.py", 9, "_engine_run_backward")
JOIN = ("/v/site-packages/torch/distributed/algorithms/join.py", 1, "__exit__")
EXIT = {"end": {"how": "exit"}}


def cause_of(evidence: Evidence) -> str:
    return Answer(evidence, find(evidence)).cause


@pytest.mark.parametrize(("name", "cause"), NAMES.items())
def test_the_cause_is_named_from_what_was_recorded(name, cause):
    assert cause_of(load(RECORDED / f"{name.replace(' ', '_')}.json")) == cause


def call(seq: int, op: str = "all_reduce", **other) -> Collective:
    values = {"group": "0", "sizes": "64", "dtypes": "Float", "place": TRAIN}
    values |= {"created": 100.0 + seq, "done": True}
    return Collective(seq=seq, op=op, **(values | other))


def at(line: int, file="/a/train.py", function: str = "<module>") -> dict:
    """Where a call was made."""
    place = (str(file), line, function)
    return {"place": place, "stack": (place,)}


def steps_of(*late: float, steps=range(2, 40), **change) -> list[list[Collective]]:
    """Of each rank the calls, one in each step of 0.1 s, so many seconds after the others'."""
    return [[call(n, created=100 + 0.1 * n + wait, **change) for n in steps] for wait in late]


def ranks_with(
    *calls: list[Collective], each=None, alive=False, running=False, lines=(), statuses=(), **note
) -> Evidence:
    """Evidence of ranks that made these calls.

    note: what all of them noted; each: what one after the other did. lines: of the log.
    """
    notes = [{"rank": n, "pid": n, "time": 200.0, "world_size": len(calls)} for n in range(9)]
    ranks = [
        Rank(n, notes[n] | note | of_rank, calls[n], alive)
        for n, of_rank in enumerate(each or [{}] * len(calls))
    ]
    log = [Line(0, text) for text in lines]
    running = running or alive
    return Evidence("made-up", ranks, lines=log, statuses=list(statuses), running=running)


def stays(*stacks: list, since: float = 180.0, alive: bool = True, **note) -> Evidence:
    """Ranks that run and have been at these lines since then; it is 200 now."""
    each = [{"stack": [list(place) for place in stack]} for stack in stacks]
    return ranks_with(*[[] for _ in stacks], each=each, alive=alive, since=since, **note)


def late(stack: list, since: float) -> Evidence:
    """Rank 0 waits for 20 s in a collective; rank 1 runs, and has been at this line since then."""
    calls = [call(1), call(80, done=False)], [call(1)]
    return ranks_with(*calls, each=[{}, {"stack": stack}], alive=True, since=since)


def raised(message: str, **other) -> dict:
    """The note of a rank that ended with an exception."""
    return {"end": {"how": "exception", "message": message} | other}


def optimizer(*shapes: list[int], **other) -> dict:
    """The note of a rank that has one optimizer, of weights with these shapes."""
    row = {"shapes": [*shapes], "plain": True, "hash": None} | other
    return {"objects": {"optimizers": [row]}}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"op": "broadcast"}, "one rank makes another call"),
        ({"sizes": "65"}, "the tensors differ in size or type"),
        ({"dtypes": "Double"}, "the tensors differ in size or type"),
        ({"sizes": "8x8"}, ""),  # another shape, the same numbers
    ],
)
def test_the_first_call_that_differs_is_found(change, cause):
    calls = [call(n) for n in range(1, 10)]
    evidence = ranks_with(calls, [*calls[:4], call(5, **change), *calls[5:]])
    assert cause_of(evidence) == cause
    assert not cause or "no. 5" in str(Answer(evidence, find(evidence)))


@pytest.mark.parametrize("size", [2, 3, 8])
def test_the_rank_that_is_missing_is_named(size):
    calls = [call(n) for n in range(1, 6)]
    hangs = [*calls, call(6, done=False)]
    evidence = ranks_with(*[calls if rank == 1 else hangs for rank in range(size)])
    text = str(Answer(evidence, find(evidence)))
    assert "all_reduce no. 6" in text and "Rank 1 has not called it" in text


def test_a_job_that_runs_is_no_hang_after_a_moment():
    evidence = ranks_with([call(1)], [call(1), call(2, done=False)], running=True)
    for seconds in (0.5, 8.0):  # the rank may be evaluating
        for rank in evidence.ranks:
            rank.note["time"] = 102.0 + seconds
        assert cause_of(evidence) == ""
    for rank in evidence.ranks:
        rank.note["time"] = 130.0
    assert cause_of(evidence) == "one rank does something else"


def test_step_times_tell_who_waits():
    calls = steps_of(0.0, 0.06, steps=range(1, 20))
    steps = step_times(ranks_with(*calls))
    assert steps is not None and steps.count == 19
    assert [round(row.wait, 3) for row in steps.of_ranks] == [0.06, 0.0]
    assert [round(row.seconds, 3) for row in steps.of_ranks] == [0.1, 0.1]
    assert cause_of(ranks_with(*calls)) == "straggler"


@pytest.mark.parametrize("name", [row.name for row in ALL.values() if row.recorded])
def test_a_log_alone_names_the_cause_where_its_line_does(name):
    failure = ALL[name]
    evidence = Evidence("job", lines=[Line(None, failure.recorded)])
    if failure.cause in {row.cause for row in ERRORS}:
        assert cause_of(evidence) == failure.cause


def test_an_effect_is_not_taken_for_a_cause():
    lines = ["RuntimeError: [.../pair.cc:553] Connection closed by peer [127.0.0.1]:3507"]
    assert cause_of(Evidence("job", lines=[Line(0, lines[0])])) == ""


def test_what_a_rank_died_of_outweighs_what_the_log_also_says():
    each, log = [{}, raised("ValueError: label 64")], ["No module named 'apex', which is optional"]
    evidence = ranks_with([call(1)], [call(1)], each=each, lines=log, statuses=[1])
    assert cause_of(evidence) == "error"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('{"event": "broken", "save": 3, "error": "EOFError: "}', "the file is half written"),
        (
            '{"save": 3, "error": "OSError: [Errno 22] Invalid argument"}',
            "the file is half written",
        ),
        ("UnpicklingError: Weights only load failed", "the file is half written"),
        ("FileNotFoundError was handled", ""),
    ],
)
def test_half_a_checkpoint_is_found_in_a_job_that_went_on(line, cause):
    evidence = ranks_with([call(1)], [call(1)], lines=[line], statuses=[0])
    assert cause_of(evidence) == cause


SOURCE = """
for step in range(9):
    reduce(gradient)
reduce(total)
reduce(weight)
"""


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ((3, 4), "uneven batches"),
        ((4, 5), "the ranks call in different orders"),
        ((3, 3), "the tensors differ"),
    ],
)
def test_a_rank_behind_its_loop_is_told_by_the_script(tmp_path, lines, cause):
    """No dump: a rank that gloo aborts leaves its stack alone."""
    (script := tmp_path / "train.py").write_text(SOURCE)
    stacks = [{"stack": at(line, script)["stack"]} for line in lines]
    evidence = ranks_with([], [], each=stacks, statuses=[134])
    evidence.ranks[1].aborted = True
    evidence.lines = [Line(1, "op.preamble.length <= op.nbytes. 8 vs 4")]
    assert cause_of(evidence).startswith(cause)


@pytest.mark.parametrize(
    ("statuses", "kills", "cause"),
    [
        ([-9], 0, "a rank was killed"),
        ([137], 0, "a rank was killed"),
        ([137], 1, "out of memory"),
        ([0], 0, ""),
    ],
)
def test_a_rank_that_was_killed(statuses, kills, cause):
    note = {"memory_kills": kills, "memory_kills_before": 0}
    evidence = ranks_with([call(1)], [call(1)], each=[EXIT, {}], statuses=statuses, **note)
    assert cause_of(evidence) == cause
    assert not cause or "rank 1" in str(Answer(evidence, find(evidence))).splitlines()[0]


def test_horovods_stall_check_names_tensors_and_ranks():
    lines = (HERE / "horovod_stall.txt").read_text().splitlines()
    evidence = ranks_with([], [], [], [], lines=lines)
    evidence.ranks[1].note["stack"] = [("/a/train.py", 12, "evaluate")]
    first, second, *_ = str(Answer(evidence, find(evidence))).splitlines()
    assert first.startswith("rank 1 does not submit DistributedOptimizer_Allreduce/grad_0, ")
    assert "horovod stall" in second and "rank 1 is at train.py:12 in evaluate" in second


@pytest.mark.parametrize(("time", "cause"), [(200.0, "horovod stall"), (190.5, "")])
def test_horovods_timeline_names_the_tensor_that_waits(time, cause):
    """The second tensor in it waits for rank 1. As while Horovod writes, the array has no end."""
    variables = {"HOROVOD_TIMELINE": str(HERE / "horovod_timeline.txt")}
    evidence = ranks_with([], [], variables=variables, time=time, running=True)
    assert cause_of(evidence) == cause
    text = str(Answer(evidence, find(evidence)))
    assert not cause or text.startswith("rank 1 does not submit grad_1")


def test_ranks_that_all_gave_up_are_not_healthy():
    """On a busy machine both may find that the other came too late."""
    note = raised("RuntimeError: gloo/pair.cc: Timed out waiting 6000ms")
    evidence = ranks_with([call(1)], [call(1)], statuses=[1], **note)
    assert cause_of(evidence) == "all wait in one call"
    assert cause_of(ranks_with([], [], **note)) == "a rank did not come"


LOOP = """
for step in range(9):
    reduce(gradient)
    if rank == 0:
        barrier()
barrier()
"""


@pytest.mark.parametrize(
    ("line", "cause"), [(5, "one rank makes another call"), (6, "uneven batches")]
)
def test_a_branch_in_the_loop_is_told_from_a_loop_that_was_left(tmp_path, line, cause):
    (tmp_path / "train.py").write_text(LOOP)
    calls = [call(n, **at(3, tmp_path / "train.py")) for n in range(1, 6)]
    other = [*calls[:4], call(5, op="barrier", sizes="", **at(line, tmp_path / "train.py"))]
    assert cause_of(ranks_with(other, calls)) == cause


def test_groups_that_are_called_in_another_order():
    calls = [call(n, group=group) for n in range(1, 4) for group in "12"]
    evidence = ranks_with(*([*calls, call(4, group=group, done=False)] for group in "12"))
    assert cause_of(evidence) == "the ranks call in different orders"
    assert "group 2" in str(Answer(evidence, find(evidence)))


def test_a_rank_that_meets_nobody_in_the_first_call_of_a_group(tmp_path):
    """Not an order of calls: the ranks that are to be there have a group of another kind."""
    (script := tmp_path / "train.py").write_text("group = dist.new_group([0, 1])\nreduce(group)\n")
    calls = [call(n) for n in range(1, 6)]
    first = call(1, group="1", done=False, stack=((str(script), 2, "f"),))
    evidence = ranks_with([*calls, first], [*calls, call(6, done=False)])
    finding = find(evidence)[0]
    assert finding.cause == "not all ranks made the group"
    assert "new_group (at train.py:1)" in finding.reason
    assert "in all_reduce no. 1 (64 Float), its first call of group 1" in finding.reason


def test_a_line_that_only_one_rank_ever_calls():
    calls = [call(n) for n in range(1, 6)]
    alone = [*calls[:3], call(4, **at(29)), call(5, **at(29)), call(6, done=False, **at(29))]
    evidence = ranks_with(alone, calls, each=[{}, EXIT])
    assert cause_of(evidence) == "one rank makes another call"


@pytest.mark.parametrize(("seconds", "cause"), [(30, "all wait in one call"), (2, "")])
def test_all_ranks_that_wait_in_one_call(seconds, cause):
    hangs = [call(1), call(2, done=False)]
    evidence = ranks_with(hangs, hangs, time=102.0 + seconds, running=True)
    assert cause_of(evidence) == cause


def test_a_command_that_failed_is_never_healthy():
    log = ["OddError: nobody knows it", ""]
    evidence = ranks_with([call(1)], [call(1)], lines=log, statuses=[3])
    assert cause_of(evidence) == "error"
    assert "OddError" in str(Answer(evidence, find(evidence))).splitlines()[0]


GUARDED = "def save():\n    if dist.get_rank() == 0:\n        gather()\n{other}    barrier()\n"


@pytest.mark.parametrize(
    ("other", "reason"),
    [("", "`if` at train.py:2"), ("    else:\n        gather()\n", "another order")],
)
def test_the_branch_that_only_some_ranks_take_is_shown(tmp_path, other, reason):
    (script := tmp_path / "train.py").write_text(GUARDED.format(other=other))
    before = [call(n) for n in range(1, 6)]
    gather = call(6, "all_gather", done=False, **at(3, script, "save"))
    barrier = call(6, "barrier", done=False, **at(4 + other.count("\n"), script, "save"))
    finding = find(ranks_with([*before, gather], [*before, barrier]))[0]
    assert finding.cause == "one rank makes another call"
    assert (reason in finding.reason) == (not other)


def test_a_straggler_is_found_at_whichever_call_the_others_wait():
    """Rank 0 is late for a broadcast, after all have averaged together."""
    calls = [
        [
            call(n, op, created=100 + 0.1 * (n // 2) + late * (n % 2))
            for n, op in enumerate(["all_reduce", "broadcast"] * 10, start=2)
        ]
        for late in (0.09, 0.01, 0.01)
    ]
    assert step_times(ranks_with(*calls)).of_ranks[1].wait == pytest.approx(0.08)
    assert find(ranks_with(*calls))[0].where.startswith("rank 0")


def test_slow_input_between_epochs_counts_too():
    """Steps of 4 ms, and 2 s before each epoch of ten."""
    created = [100 + 0.004 * n + 2.0 * (n // 10) for n in range(40)]
    calls = [call(n, created=when) for n, when in enumerate(created)]
    note = {"places": [["data", "/a/train.py", 3, "train"]]}
    samples = [[100 + 0.02 * n, 0] for n in range(300)]
    assert cause_of(ranks_with(calls, calls, samples=samples, **note)) == "slow input"
    assert cause_of(ranks_with(calls, calls)) == ""


def test_weights_differ_because_forward_went_around_ddp():
    each = [optimizer([10, 10], [10], hash=value) for value in (1, 2)]
    for elements, reason in (("1", "they are not averaged"), ("110", "different weights")):
        calls = [call(n, sizes=elements) for n in range(1, 4)]
        assert reason in find(ranks_with(calls, calls, each=each))[0].reason


def test_what_tensorflow_says():
    """Of a plugin that is there twice: nothing. Of a worker that left: that."""
    text = "cuda_fft.cc:477] Unable to register cuFFT factory: Attempting to register factory"
    evidence = Evidence("job", lines=[Line(0, text)], statuses=[1])
    assert cause_of(evidence) == "error"
    message = (
        "UnavailableError: {{CollectiveReduceV2}} Collective ops is aborted by: Error reported"
    )
    ends = [{"how": "exception", "message": message}, {"how": "exit"}]
    for number, end in enumerate(ends):
        note = {"task": f"worker {number}", "time": 200.0, "end": end}
        evidence.tasks.append(Rank(number, note))
    evidence.lines.append(Line(0, f"tensorflow.python.errors_impl.{message}"))
    assert find(evidence)[0].reason == "it waited for worker 1, which had ended without an error"


def test_where_no_call_is_recorded_a_hang_would_not_show():
    evidence = ranks_with([], [], running=True)
    answer = Answer(evidence, find(evidence))
    assert not answer.known and "a hang would not show" in str(answer)
    for note, known in (({}, False), ({"hashes": [{"1": 5}]}, True)):
        ended = Answer(ranks_with([call(1)], [call(1)], end={"how": "exit"}, **note), [])
        assert ended.known == known and ("a fault would not show" in str(ended)) != known
        assert ("it shows no fault" in str(ended)) == known == ("Nothing to do" in str(ended))


@pytest.mark.parametrize(
    ("stacks", "cause", "reason"),
    [
        ([[RECV, WRAPPER], [RECV, WRAPPER]], "sends and receives do not match", "nobody sends"),
        ([[RECV, WRAPPER], []], "one rank does something else", "rank 1 is at train.py:7"),
        ([[HOROVOD], []], "one rank does something else", "rank 1 is at train.py:7"),
        ([[HOROVOD], [HOROVOD]], "", ""),  # all in one call, which may be long
        ([[RECV, (RECV[0], 1, "<module>")], []], "", ""),  # an import
        ([[], []], "", ""),
    ],
)
def test_ranks_that_stay_in_a_call_that_nobody_records(stacks, cause, reason):
    evidence = stays(*[[*stack, TRAIN] for stack in stacks])
    assert cause_of(evidence) == cause
    assert not cause or reason in str(Answer(evidence, find(evidence)))
    assert cause_of(stays(*[[*stack, TRAIN] for stack in stacks], since=195.0)) == ""


@pytest.mark.parametrize(("since", "cause"), [(170.0, "no batch comes"), (190.0, "")])
def test_all_ranks_that_stay_in_their_loaders(since, cause):
    loader = ("/v/site-packages/torch/utils/data/dataloader.py", 9, "_try_get_data")
    queue, script = ("/usr/lib/python3.11/multiprocessing/queues.py", 9, "get"), ("/a/t.py", 7, "f")
    assert cause_of(stays([queue, loader, script], [loader, script], since=since)) == cause
    assert cause_of(stays([loader, script], [script], since=since)) != "no batch comes"


@pytest.mark.parametrize(("hooks", "ddp"), [(1, False), (3, False), (1, True), (3, True)])
def test_gradients_that_are_averaged_again(hooks, ddp):
    """Six gradients, or DDP's buckets; at each of ten steps so many calls in backward for each."""
    stack = ("/v/site-packages/torch/autograd/graph.py", 9, "_engine"), ("/a/t.py", 7, "average")
    calls = [
        call(n, created=100 + step + 0.01 * n, place=stack[1], stack=stack)
        for step in range(10)
        for n in range(6 * hooks)
    ]
    note = {"stepped_at": [100.5 + step for step in range(10)], "ddp": ddp} | optimizer(*[[8]] * 6)
    note["objects"]["models"] = [{"buckets": "8,8,8,8,8,8", "batch_norms": 0, "communication": 0}]
    causes = {finding.cause for finding in find(ranks_with(calls, calls, **note))}
    assert ("gradients are averaged several times" in causes) == (hooks > 1)


def test_ranks_that_were_killed_while_they_waited_are_never_healthy():
    """Long in Horovod's calls: that is the cause. For a moment, or nowhere: nobody knows."""
    for stack, since, cause in (
        ([HOROVOD, TRAIN], 180.0, "one rank does something else"),
        ([HOROVOD, TRAIN], 199.0, ""),
        ([TRAIN], 180.0, ""),
    ):
        evidence = stays(stack, [TRAIN], since=since, alive=False)
        answer = Answer(evidence, find(evidence))
        assert answer.cause == cause and answer.known == bool(cause)
        assert cause or "a rank was killed, and whether it hung" in str(answer).splitlines()[0]
        assert "Nothing" not in str(answer) and "no fault" not in str(answer)
    evidence = ranks_with([], [], **EXIT)
    evidence.tasks.append(Rank(-1, {"task": "ps 0"}))  # a parameter server never ends by itself
    ended = Answer(evidence, [])
    assert not ended.known and "no fault" not in str(ended) and "would not show" in str(ended)


def test_horovods_calls_in_both_branches_of_an_if_about_the_rank(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("if hvd.rank() == 0:\n    reduce()\nelse:\n    save()\n")
    places = [(str(script), line, "<module>") for line in (2, 4)]
    evidence = stays([HOROVOD, places[0]], [places[1]])
    assert cause_of(evidence) == "one rank makes another call"
    assert "train.py:1" in find(evidence)[0].reason
    evidence = stays([HOROVOD, places[0]], [HOROVOD, TRAIN])
    assert cause_of(evidence) == "the ranks call in different orders"


def test_an_if_that_one_rank_took_for_a_value_of_its_own(tmp_path):
    """Both in one loop: not a loop that was left. Its condition does not ask for the rank."""
    text = "for epoch in e:\n    step()\n    if value < best:\n        save()\n"
    finding = find(left_a_loop(tmp_path, text, 2, 4))[0]
    assert finding.cause == "one rank makes another call" and "train.py:3" in finding.reason
    assert finding.reason.startswith("rank 1 took")


def test_without_an_if_about_the_rank_none_is_blamed(tmp_path):
    """As where a rank skips backward for a loss of its own: the next forward's broadcast."""
    text = "for x in data:\n    forward()\n    backward()\ngroup = dist.new_group()\n"
    (script := tmp_path / "train.py").write_text(text)
    calls = [call(n, **at(3, script)) for n in range(1, 6)]
    buffers = [call(n, "broadcast", done=False, **at(2, script)) for n in (6, 7)]
    evidence = ranks_with([*calls, call(6, done=False, **at(3, script))], [*calls, *buffers])
    finding = find(evidence)[0]
    assert finding.cause == "one rank makes another call" and "rank == 0" not in finding.remedy
    assert "rank 1 made the call at train.py:3 in <module> 5 times" in finding.reason
    assert "a loss that is not finite" in finding.remedy
    assert finding.remedy.startswith("If one of the calls is meant for the group of train.py:4,")
    answer = str(Answer(evidence, find(evidence)))
    assert "rank 1 broadcast no. 6" in answer and "no. 7" not in answer


def test_a_rank_that_works_on_is_no_fault(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("for batch in data:\n    look()\nwhile not ready():\n    sleep()\n")
    works, polls = ([(str(script), line, "f")] for line in (2, 4))
    assert cause_of(late(works, since=180.0)) == ""
    assert cause_of(late(polls, since=180.0)) == "one rank does something else"
    assert cause_of(late(polls, since=199.0)) == ""  # has moved
    answer = Answer(moving := late(works, since=180.0), find(moving))
    assert "rank 1 has not come yet: it is at train.py:2" in str(answer)


@pytest.mark.parametrize(
    ("library", "lines", "busy", "cause"),
    [
        ("filelock/_api.py", "time.sleep(0.1)", False, "one rank waits for a lock"),
        ("other.py", "time.sleep(0.1)", False, "one rank does something else"),
        ("filelock/_api.py", "time.sleep(0.1)", True, ""),  # that rank may hold the lock
        ("other.py", "work()", False, ""),
    ],
)
def test_a_rank_in_a_library_that_sleeps(tmp_path, library, lines, busy, cause):
    """It moves between the lines of the library, and has been at one of the script's for 10 s."""
    path = tmp_path / "site-packages" / library
    path.parent.mkdir(parents=True)
    path.write_text(lines)
    works = {"stack": [("/a/train.py", 9, "look")], "since": 199.5, "samples": []}
    waits = {"stack": [(str(path), 1, "acquire"), TRAIN], "places": [["compute", *TRAIN]]}
    waits["samples"] = [[190 + 0.1 * n, 0] for n in range(99)]
    calls = [call(1), call(80, done=False)], [call(1)], [call(1)]
    each = [{}, waits, works if busy else waits]
    assert cause_of(ranks_with(*calls, each=each, alive=True, since=199.5)) == cause


def test_a_rank_that_left_while_others_train_is_never_healthy():
    """A rank in gloo's call writes nothing; one that only trains on may do so alone."""
    for silent, cause in ((True, "one rank ended early"), (False, "")):
        evidence = stays([BACKWARD, ("/a/train.py", 7, "one")], [])
        evidence.ranks[0].silent, evidence.ranks[1].note["end"] = silent, {"how": "exit"}
        evidence.ranks[1].collectives = [call(1)]
        text = str(answer := Answer(evidence, find(evidence)))
        assert answer.cause == cause and "no fault" not in text and "Nothing to do" not in text
        assert (
            "rank 0 waits in backward at train.py:7" in text
            or "rank 1 left it" in text.splitlines()[0]
        )
        assert "ank 1 has not called it: it has ended" in text or not silent
    assert not answer.known
    del evidence.ranks[1].note["end"]
    assert "no fault" in str(Answer(evidence, find(evidence)))


def test_no_rank_is_said_to_wait_for_nobody_above_one_that_waits():
    """All are in one barrier, which has not taken long."""
    evidence = ranks_with(*[[call(1), call(2, done=False)]] * 2, time=103.0, running=True)
    text = str(Answer(evidence, find(evidence)))
    assert "no fault" in text and "none waits long for another" in text
    assert "rank 1: was killed; waits" in text


def test_a_rank_that_gave_up_is_not_the_one_that_did_not_come():
    gave_up = raised("RuntimeError: gloo/pair.cc: Connection closed by peer")
    evidence = ranks_with([], [], each=[gave_up, EXIT])
    finding = find(evidence)[0]
    assert finding.cause == "a rank did not come"
    assert finding.where.startswith("rank 0 waited for rank 1 at an unknown line: RuntimeError")
    evidence.running = evidence.ranks[0].alive = True  # it still prints its error
    evidence.ranks[0].collectives, evidence.ranks[1].collectives = [call(99), call(100)], [call(99)]
    assert cause_of(evidence) == "one rank ended early"
    assert "rank 0: is ending, RuntimeError" in str(Answer(evidence, []))


HINT = "RuntimeError: Too many open files. Communication with the workers is no longer possible. "
HINT += "Increase the limit by `ulimit -n` in the shell, or change the sharing strategy by calling "
HINT += "`torch.multiprocessing.set_sharing_strategy('file_system')` in the script."


def test_what_the_rows_say_of_ranks():
    evidence = stays([BACKWARD], [], [], [])
    evidence.ranks[0].silent = True
    for rank, end in zip(evidence.ranks[1:], ["exit", "exit", "exception"], strict=True):
        rank.note["end"] = {"how": end} | ({"message": HINT} if end == "exception" else {})
        rank.alive = rank.number == 1
    evidence.ranks[3].note["end"]["place"] = ("/a/train.py", 7, "load")
    text = str(Answer(evidence, find(evidence)))
    assert "rank 0: runs, but a call keeps it from answering; no call is recorded; now at " in text
    assert "rank 1: is ending; no call is recorded\n" in text
    assert "rank 2: ended without an exception; no call is recorded\n" in text
    assert "rank 3: ended, RuntimeError: Too many" in text and "last at train.py:7 in load" in text
    assert HINT.removeprefix("RuntimeError: ")[:-80] in text.splitlines()[1]
    assert "sharing strategy ...; no call" in text


def test_a_horovod_job_is_told_nothing_of_torchs_groups():
    evidence = stays([HOROVOD, TRAIN], [TRAIN], libraries=["horovod"])
    finding = find(evidence)[0]
    assert finding.reason.startswith("the wait has lasted 20 s, and rank 1 is at train.py:7")
    assert "HOROVOD_STALL" in finding.remedy and "init_process_group" not in finding.remedy
    for libraries, name in ((["horovod"], "HOROVOD_STALL"), ([], "init_process_group")):
        killed = stays([TRAIN], [TRAIN], since=199.0, alive=False, libraries=libraries)
        text = str(Answer(killed, find(killed)))
        assert {n for n in ("HOROVOD_STALL", "init_process_group") if n in text} == {name}


SKIPS = """
for batch in data:
    try:
        step()
    except RuntimeError:
        zero_grad()
while not ready():
    sleep(1)
"""


@pytest.mark.parametrize(
    ("handler", "goes_on"),
    [("zero_grad()", True), ("raise", False), ("sys.exit(1)", False), ("os._exit(1)", False)],
)
def test_a_rank_that_swallowed_an_error_and_polls(tmp_path, handler, goes_on):
    """It moves between two lines and is not busy; that the others wait makes no straggler."""
    (script := tmp_path / "train.py").write_text(SKIPS.replace("zero_grad()", handler))
    place = at(4, script, "f")
    steps = steps_of(0.06, 0.0, **place)
    steps[0].append(call(40, created=105.0, done=False, **place))
    note = {"stack": [(str(script), 7, "f")], "places": [["compute", str(script), 8, "f"]]}
    note["samples"] = [[120 + 0.1 * n, 0] for n in range(99)]
    evidence = ranks_with(*steps, each=[{}, note], alive=True, time=130.0, since=129.0)
    (finding,) = find(evidence)
    assert finding.cause == "one rank does something else"
    skipped = "38 times and the others 39 times: an error in the `try` at train.py:3"
    assert (skipped in finding.reason) == goes_on


def test_an_answer_from_elsewhere_that_does_not_come():
    stack = [
        ("/p/lib/python3.11/socket.py", 1, "readinto"),
        ("/p/lib/python3.11/u.py", 2, "urlopen"),
    ]
    evidence = late([*stack, ("/a/train.py", 9, "log")], since=180.0)
    assert cause_of(evidence) == "one rank waits for the network"
    assert "in urlopen" in find(evidence)[0].reason


def test_ranks_that_all_wait_to_meet_more():
    place = ("/v/site-packages/torch/distributed/x.py", 1, "init_process_group")
    waits = stays([place, ("/a/train.py", 7, "main")], [place, ("/a/train.py", 7, "main")])
    assert cause_of(waits) == "rendezvous" and "all 2 ranks" in find(waits)[0].reason
    starts = stays([place], [place], since=195.0)
    assert cause_of(starts) == ""


@pytest.mark.parametrize(
    ("hashes", "cause"),
    [
        ([{"1": 5, "2": 6, "4": 7}, {"1": 5, "2": 8, "4": 9}], "weights differ"),
        ([{"1": 5, "2": 6, "4": 7}, {"1": 5, "2": 6, "4": 9}], ""),  # just about to average
        ([{"1": 5, "2": 6}, {"1": 5, "2": 6, "4": 9}], ""),  # one rank is a step ahead
    ],
)
def test_weights_that_differ_while_ddp_trains(hashes, cause):
    each = [{"hashes": [of_rank]} for of_rank in hashes]
    assert cause_of(ranks_with([call(1)], [call(1)], each=each, ddp=True)) == cause
    # Local SGD averages later.
    assert cause_of(ranks_with([call(1)], [call(1)], each=each, ddp=False)) == ""


@pytest.mark.parametrize(
    ("sizes", "first", "cause"),
    [
        ("8x8", 5, "weights differ"),
        ("1", 5, ""),  # a loss is averaged, the weights now and then
        ("8x8", 6, ""),  # began differently, as parts of one model do
    ],
)
def test_weights_that_differ_although_each_step_averages_by_hand(sizes, first, cause):
    calls = [call(n, sizes=sizes) for n in range(1, 20)]
    note = {"stepped_at": [100.5 + n for n in range(1, 17)]} | optimizer([8, 8], [64, 8])
    each = [{"hashes": [{"0": start, "1": n, "2": n}]} for n, start in enumerate((5, first))]
    evidence = ranks_with(calls, calls, each=each, **note)
    assert cause_of(evidence) == cause
    assert not cause or "64 numbers in the last step, and there are 576" in find(evidence)[0].reason


def test_models_of_two_groups_may_differ():
    """Ranks 0 and 1 train one model in a group of theirs, ranks 2 and 3 another one."""
    for values, cause in (((5, 5, 6, 6), ""), ((5, 5, 6, 7), "weights differ")):
        each = [{"hashes": [{"1": value, "2": value}]} for value in values]
        evidence = ranks_with(*[[call(1, group=group)] for group in "1122"], each=each, ddp=True)
        assert cause_of(evidence) == cause


def test_ranks_in_join_or_with_unequal_steps_are_not_compared_before_the_end():
    for stack, steps, cause in (((), 4, "weights differ"), ((JOIN,), 4, ""), ((), 6, "")):
        evidence = ranks_with([call(1, stack=stack)], [call(1)], ddp=True)
        for rank, count in zip(evidence.ranks, (4, steps), strict=True):
            hashes = {str(step): rank.number for step in (1, 2, 4)}
            rank.note |= {"hashes": [hashes], "optimizer_steps": count}
        assert cause_of(evidence) == cause


@pytest.mark.parametrize(("looked", "cause"), [(103.0, "order never changes"), (101.0, "")])
def test_only_steps_before_the_look_count_for_an_epoch(looked, cause):
    """Ten batches per epoch: after the look at step 10 set_epoch may have been called."""
    loader = {"sampler": "DistributedSampler", "batches": 10, "batch_size": 32, "epoch": 0}
    objects = {"loaders": [loader | {"distributed": True, "shuffle": True}], "time": looked}
    assert cause_of(ranks_with(*steps_of(0.0, 0.0), objects=objects)) == cause


def test_processes_that_train_each_for_itself():
    note = {"optimizer_steps": 50, "joined": False, "libraries": [], "variables": {}}
    assert cause_of(ranks_with([], [], **note)) == "ranks do not know each other"
    assert cause_of(ranks_with([], [], **note | {"libraries": ["horovod"]})) == ""


def test_equal_loaders_over_different_data():
    row = {"sampler": "RandomSampler", "batches": 9, "batch_size": 8, "distributed": False}
    row |= {"shuffle": None, "epoch": None, "batch_sampler": "BucketSampler"}
    models = [{"batch_norms": 0, "buckets": ""}]

    def loaders(*data):
        each = [{"objects": {"loaders": [row | {"data": d}], "models": models}} for d in data]
        return ranks_with([call(1)], [call(1)], each=each)

    assert "a BucketSampler over" in find(loaders(7, 7))[0].where
    assert cause_of(loaders(7, 7)) == "same data on all ranks"
    assert cause_of(loaders(7, 8)) == ""


EARLY = {"1": 5, "2": 6, "4": 7, "8": 8}


@pytest.mark.parametrize(
    ("inputs", "plain", "loaded", "cause"),
    [
        (({"1": 5, "2": 6}, {"1": 5, "2": 6}), True, True, "same data on all ranks"),
        (({"1": 5, "2": 6}, {"1": 5, "2": 7}), True, True, ""),
        ((EARLY | {"16": 9}, EARLY | {"16": 1}), True, True, "same data on all ranks"),
        ((EARLY | {"16": 9}, EARLY | {"8": 9, "16": 1}), True, True, ""),
        (({"1": 5, "2": 5}, {"1": 5, "2": 5}), True, True, ""),  # a benchmark's input
        (({"1": 5, "2": 6}, {"1": 5, "2": 6}), False, True, ""),  # ranks share the weights
        (({"1": 5, "2": 6}, {}), True, True, ""),
        (({"1": 5, "2": 6}, {"1": 5, "2": 6}), True, False, ""),  # random numbers, no data
    ],
)
def test_what_the_models_are_called_with_is_compared(inputs, plain, loaded, cause):
    """As with an IterableDataset, of which a loader says nothing."""
    each = [optimizer([8, 8], plain=plain) | {"inputs": of_rank} for of_rank in inputs]
    assert cause_of(ranks_with([call(1)], [call(1)], each=each, loaded=loaded)) == cause


@pytest.mark.parametrize(
    ("name", "values", "cause"),
    [
        ("seed", (0, 7), "samplers of different seeds"),
        ("seed", (7, 7), ""),
        ("subset", (5, 6), "splits of different seeds"),
        ("subset", (5, 5), ""),
        ("subset", (5, None), ""),
    ],
)
def test_samplers_that_deal_out_other_examples_on_each_rank(name, values, cause):
    loader = {"sampler": "DistributedSampler", "batches": 9, "batch_size": 8, "epoch": 1}
    loader |= {"distributed": True, "shuffle": True}
    each = [{"objects": {"loaders": [loader | {name: value}]}} for value in values]
    assert cause_of(ranks_with([call(1)], [call(1)], each=each)) == cause


@pytest.mark.parametrize(
    ("rates", "stack", "first", "words"),
    [
        ((0.1, 0.3), (), 0, "different learning rates: [0.1], [0.3]"),
        ((0.1, 0.1), (TRAIN,), 0, "forward goes around the wrapper"),
        ((0.1, 0.1), (("/torch/autograd/graph.py", 7, "run"),), 0, "under no_sync"),
        ((0.1, 0.3), (TRAIN,), 1, "differ before the first step: DDP made them equal"),
    ],
)
def test_why_weights_differ_in_spite_of_ddp(rates, stack, first, words):
    evidence = ranks_with([call(1, stack=stack)], [call(1, stack=stack)], ddp=True)
    for rank, rate in zip(evidence.ranks, rates, strict=True):
        rank.note["hashes"] = [{"0": first * rank.number, "1": rank.number, "2": rank.number}]
        rank.note |= optimizer([8, 8]) | {"rates": [{"2": [rate]}]}
    assert words in find(evidence)[0].reason
    rank.note |= optimizer([8, 9])  # a rank's own, as where each site has its head
    assert cause_of(evidence) == ""


def left_a_loop(tmp_path, script: str, inside: int, behind: int) -> Evidence:
    """Rank 0 calls in a loop for the sixth time, rank 1 calls a barrier behind it after five."""
    (path := tmp_path / "train.py").write_text(script)
    steps = [call(n, done=n < 6, **at(inside, path)) for n in range(1, 7)]
    barrier = call(6, "barrier", done=False, **at(behind, path))
    return ranks_with(steps, [*steps[:5], barrier])


def test_a_break_of_one_rank_is_told_from_fewer_batches(tmp_path):
    body = "for epoch in e:\n    for batch in data:\n        step()\n{}barrier()\n"
    stops = left_a_loop(tmp_path, body.format("    if bad:\n        break\n"), 3, 6)
    assert cause_of(stops) == "one rank ended early" and "train.py:4" in find(stops)[0].reason
    assert cause_of(left_a_loop(tmp_path, body.format(""), 3, 4)) == "uneven batches"


def test_where_a_rank_may_have_skipped_a_batch_is_named(tmp_path):
    body = "for batch in data:\n    for row in batch:\n        continue\n"
    body += "    if bad(batch):\n        continue\n    step()\n{}barrier()\n"
    finding = find(left_a_loop(tmp_path, body.format(""), 6, 7))[0]
    assert finding.cause == "uneven batches" and "`continue` (train.py:5)," in finding.reason


def test_a_rank_that_calls_something_inside_the_loop_has_not_left_it(tmp_path):
    """Rank 0's call, in a callback's loop, is one that the others never make."""
    path = tmp_path / "train.py"
    for test, reason in (("is_global_zero", "see the `if` at train.py:4"), ("lucky", "the `if`")):
        lines = ("while steps:", "    step()", "    for callback in callbacks:")
        path.write_text("\n".join([*lines, f"        if {test}:", "            share()"]))
        place = (str(path), 2, "<module>")
        steps = [call(n, place=place, stack=(BACKWARD, place)) for n in range(1, 7)]
        other = call(6, "broadcast", done=False, **at(5, path))
        finding = find(ranks_with([*steps[:5], other], steps))[0]
        assert finding.cause == "one rank makes another call" and reason in finding.reason


def test_a_loop_inside_the_step_that_runs_less_often_on_a_rank(tmp_path):
    """One reduce for each class that a rank has seen; the other is in the next step's backward."""
    (path := tmp_path / "train.py").write_text(
        "for step in steps:\n    backward()\n    for c in seen:\n        reduce(c)\n"
    )
    step, each = at(2, path, "f"), at(4, path, "f")
    step["stack"] = (BACKWARD, *step["stack"])
    ops = ["all_reduce", "reduce", "reduce", "all_reduce", "reduce"]
    both = [call(n, o, **(each if o == "reduce" else step)) for n, o in enumerate(ops, start=1)]
    for op in ("reduce", "all_reduce"):  # of one operation, and of another size
        pair = call(6, op, sizes="2", done=False, **each), call(6, done=False, **step)
        finding = find(ranks_with(*([*both, last] for last in pair)))[0]
        assert finding.cause == "one rank makes another call"
        assert "train.py:4 in f, rank 1 all_reduce no. 6 (64 Float) at train.py:2" in finding.where
        assert finding.reason == (
            "rank 1 made the call at train.py:4 in f 3 times and rank 0 4 times: what leads there, "
            "a loop or an `if`, differs among the ranks"
        )
        assert "all_reduce of the condition" in finding.remedy


def test_a_rank_whose_queue_nobody_fills():
    stack = [("/p/lib/python3.11/queue.py", 1, "get"), ("/a/train.py", 9, "batches")]
    evidence = late(stack, since=180.0)
    evidence.ranks[1].note["other_threads"] = []
    assert cause_of(evidence) == "one rank waits for a thread"
    assert "train.py:9 in batches, in get, for another thread: but none" in find(evidence)[0].reason
    evidence.ranks[1].note["other_threads"] = [["loader", "/a/train.py", 30, "decode"]]
    assert "thread: loader is at train.py:30 in decode" in find(evidence)[0].reason


@pytest.mark.parametrize(("name", "reason"), [("save", "rank 0 still wrote it, at"), ("f", "half")])
def test_a_file_that_is_read_while_a_rank_writes_it(name, reason):
    writes = {"stack": [("/a/train.py", 3, "put"), ("/a/train.py", 9, name)]}
    message = "RuntimeError: PytorchStreamReader failed reading file data/15: file read failed."
    finding = find(ranks_with([call(1)], [call(1)], each=[writes, raised(message)]))[0]
    assert reason in finding.reason and "barrier" in finding.remedy


def test_a_batch_of_one_is_no_fault_of_the_line_that_raised():
    message = "ValueError: Expected more than 1 value per channel when training, got input size"
    evidence = ranks_with([], [], **raised(message))
    assert cause_of(evidence) == "batch of one" and "drop_last" in find(evidence)[0].remedy


def test_a_call_around_ddps_wrapper_is_shown(tmp_path):
    (script := tmp_path / "train.py").write_text("save(m.module.state_dict())\nm.module.act(x)\n")
    calls, each = [call(1, **at(1, script))], [{"hashes": [{"1": n, "2": n}]} for n in (0, 1)]
    evidence = ranks_with(calls, calls, each=each, ddp=True)
    assert "(train.py:2)" in find(evidence)[0].reason


@pytest.mark.parametrize(
    ("source", "reason", "remedy"),
    [
        (
            "act(m.module.act(x))",
            "does forward go around the wrapper (train.py:1), does",
            "`.module`",
        ),
        ("with m.no_sync():", "under no_sync (train.py:1), or", "outside of no_sync"),
        ("m(x)  # no_sync", "under no_sync, or did weights begin to need", "requires_grad"),
    ],
)
def test_weights_that_ddp_lets_differ_by_what_the_script_says(tmp_path, source, reason, remedy):
    """Also if the optimizer is still there at the end, and gradients were exchanged."""
    (script := tmp_path / "train.py").write_text(f"{source}\n")
    of_script = at(1, script)
    backward = (("/torch/autograd/graph.py", 7, "run"), *of_script["stack"])
    calls = [call(1, sizes="110", **of_script | {"stack": backward})]
    for optimizers in ([], [{"shapes": [[10, 10], [10]], "plain": True}]):
        evidence = ranks_with(calls, calls, ddp=True)
        for rank in evidence.ranks:
            rank.note["hashes"] = [{"1": rank.number, "2": rank.number}]
            rank.note["objects"] = {"optimizers": [o | {"hash": rank.number} for o in optimizers]}
        finding = find(evidence)[0]
        assert reason in finding.reason and remedy in finding.remedy
        assert ("module" in finding.remedy) == ("module" in source)


def test_an_optimizer_of_weights_that_the_model_has_no_more():
    for hashes, idle, cause in (
        ({str(2**n): 7 for n in range(6)}, True, "weights do not change"),
        ({str(2**n): 7 for n in range(6)}, False, ""),
        ({str(2**n): n for n in range(6)}, True, ""),
    ):
        evidence = ranks_with([call(1)], [call(1)], idle=idle, hashes=[hashes])
        assert cause_of(evidence) == cause


def test_ranks_whose_data_are_at_an_end_in_join_make_nobody_a_straggler():
    """Rank 0's data end first; it answers the other's calls at once, also after the end."""
    together, later = steps_of(0.0, 0.0, steps=range(2, 20)), range(20, 80)
    answers, alone = steps_of(0.0, 0.06, steps=later)
    (joined,) = steps_of(0.0, steps=later, stack=(JOIN,))
    assert cause_of(ranks_with(together[0] + answers, together[1] + alone)) == "straggler"
    assert cause_of(ranks_with(together[0] + joined, together[1] + alone)) == ""


def test_who_is_slow_in_a_part_of_the_run_is_no_straggler():
    """As with a file on a slower disk; the median of the wait is past the bound."""
    slow, other = steps_of(0.0, 0.06, steps=range(2, 32)), steps_of(0.06, 0.0, steps=range(32, 50))
    evidence = ranks_with(*[a + b for a, b in zip(slow, other, strict=True)])
    assert cause_of(evidence) == ""
    assert cause_of(ranks_with(*slow)) == "straggler"


def test_a_step_of_ddp_ends_with_its_gradients_and_not_with_an_epoch():
    """Ten steps in each epoch, of a buffer and a gradient; then rank 0 validates for a second."""
    calls: list[list[Collective]] = [[], []]
    for number, of_rank in enumerate(calls):
        seq = 0
        for epoch in range(6):
            for step in range(11):
                late = 1.0 if step == 10 and number == 0 else 0.0
                created = 100 + 2.0 * epoch + 0.1 * step + late
                names = ["broadcast", "all_reduce"] if step < 10 else ["barrier"]
                for op in names:
                    seq += 1
                    stack = (BACKWARD,) if op == "all_reduce" else ()
                    of_rank.append(call(seq, op, created=created, stack=stack))
    evidence = ranks_with(*calls)
    steps = step_times(evidence)
    assert steps is not None and (steps.count, steps.collectives) == (60, 1)
    assert cause_of(evidence) == ""


@pytest.mark.parametrize(("growth", "cause"), [(0.02, "steps get slower and slower"), (0.0, "")])
@pytest.mark.parametrize("gathers", [False, True])
def test_steps_that_get_slower_and_slower_name_the_line_that_grew(tmp_path, growth, cause, gathers):
    """From 0.1 s to 0.7 s in lines 8 and 9, as many in each, of one function; 0.1 s in another."""
    (script := tmp_path / "train.py").write_text("\n" * 8 + "gather_object(scores)")
    calls, samples, now = [], [], 100.0
    for step in range(30):
        samples.append([now, 0])
        samples += [[now + 0.1 * part, 1 + part % 2] for part in range(1, int(10 * growth * step))]
        now += 0.1 + growth * step
        calls.append(call(2 * step + 1, created=now, stack=(BACKWARD,)))
        gather = {"sizes": str(64 * step), "created": now + 0.01, "place": ("/a/train.py", 9, "f")}
        calls.append(call(2 * step + 2, "all_gather", **gather))
    kinds = ["compute", "compute", "communication" if gathers else "compute"]
    lines = zip(kinds, (7, 8, 9), "fgg", strict=True)
    places = [[kind, str(script), line, name] for kind, line, name in lines]
    evidence = ranks_with(calls, calls, places=places, samples=samples)
    assert cause_of(evidence) == cause
    assert not cause or "in g" in find(evidence)[0].where


def test_on_a_busier_machine_no_line_is_blamed():
    """All lines take longer, and backward, in which a rank waits, most of the time."""
    calls, samples, now = [], [], 100.0
    for step in range(30):
        samples += [[now + (0.1 + 0.02 * step) * part / 4, part % 3] for part in range(4)]
        now += 0.1 + 0.02 * step
        calls.append(call(step + 1, created=now, stack=(BACKWARD,)))
    kinds = ["backward", "compute", "compute"]
    places = [[kind, "/a/train.py", line, "f"] for line, kind in enumerate(kinds, start=7)]
    assert cause_of(ranks_with(calls, calls, places=places, samples=samples)) == ""


@pytest.mark.parametrize(
    ("notes", "cause"),
    [
        ([{"host": "a"}, {"host": "a"}], ""),
        ([{"host": "a"}, {"host": "b"}], "narrow link"),
        ([{"host": "a"}, {"host": "a", "paced": True}], "narrow link"),
    ],
)
def test_ranks_of_one_host_have_no_narrow_link_unless_it_is_limited(notes, cause):
    calls = steps_of(0.0, 0.0, sizes="1000000")
    samples = [[100 + 0.05 * n, 0] for n in range(90)]
    places = [["communication", "/a/train.py", 7, "f"]]
    evidence = ranks_with(*calls, each=notes, places=places, samples=samples)
    assert cause_of(evidence) == cause


GRAPH = "FailedPreconditionError: Graph execution error:\n\nDetected at node x defined at\n"
GRAPH += '  File "train.py", line 9, in <module>\n\n{}\n\t [[{{{{node x}}}}]]'


def test_an_error_of_all_ranks_blames_none_and_shows_its_reason():
    for words, cause in (
        ("Mismatched BROADCAST tensor shapes: [3, 2], [4, 2]", "shapes differ"),
        ("FileError: the sky fell", "error"),
    ):
        note = raised(GRAPH.format(words), place=("/a/train.py", 9, "f"))
        evidence = ranks_with([], [], **note)
        text = str(Answer(evidence, find(evidence)))
        assert cause_of(evidence) == cause and words in text.partition("Evidence")[0]
        assert "other ranks only waited" not in text
        assert text.count(f"FailedPreconditionError: {words}") > 1
    evidence.ranks[1].note = evidence.ranks[1].note | {"end": {}}
    assert find(evidence)[0].where.startswith("rank 0, train.py:9")
    assert "other ranks only waited" in find(evidence)[0].remedy


TIMED_OUT = "RuntimeError: gloo/unbound_buffer.cc:78] Timed out waiting 8000ms for recv"


@pytest.mark.parametrize(
    ("since", "place", "cause"),
    [
        (199.5, 3, "a rank came too late"),
        (180.0, 3, "one rank makes another call"),
    ],
)
def test_a_timeout_while_the_other_rank_worked(tmp_path, since, place, cause):
    (script := tmp_path / "train.py").write_text(
        "if rank != 0:\n    barrier()\ntokenize()\nif rank == 0:\n    barrier()\n"
    )
    barrier = call(1, "barrier", done=False, **at(2, script))
    works = {
        "stack": [(str(script), place, "f")],
        "places": [["compute", str(script), place, "f"]],
        "samples": [[190 + n, 0] for n in range(10)],
    }
    finding = find(ranks_with([], [barrier], each=[works, raised(TIMED_OUT)], since=since))[0]
    assert finding.cause == cause
    assert cause != "a rank came too late" or "gave up after 8 s" in finding.reason


def test_a_break_beside_horovods_call(tmp_path):
    (script := tmp_path / "train.py").write_text(
        "for epoch in e:\n    step()\n    if bad:\n        break\nreduce(best)\n"
    )
    inside, behind = ((str(script), line, "<module>") for line in (2, 5))
    for stacks in ([[inside], [HOROVOD, behind]], [[HOROVOD, inside], [HOROVOD, behind]]):
        finding = find(stays(*stacks))[0]
        assert finding.cause == "one rank ended early" and "train.py:3" in finding.reason
        assert "one decision to stop" in finding.remedy


RETURNS = """
def log(model):
    if {test}:
        return
    gather(model)
def train():
    step()
    log(model)
    barrier()
"""


@pytest.mark.parametrize(
    ("test", "other", "blamed"),
    [
        ("get_rank() != 0", [(9, "train")], True),
        ("get_rank() != 0", [(5, "log"), (8, "train")], False),
        ("local_rank == -1", [(9, "train")], False),
        ("empty", [(9, "train")], False),
    ],
)
def test_an_early_return_for_other_ranks_is_a_branch(tmp_path, test, other, blamed):
    (script := tmp_path / "train.py").write_text(RETURNS.format(test=test))
    stack = [(str(script), 5, "log"), (str(script), 8, "train")]
    elsewhere = [(str(script), *place) for place in other]
    assert bool(branch_of(stack, [*elsewhere, ("/a/other.py", 1, "f")])) == blamed


@pytest.mark.parametrize(("count", "cause"), [(1, ""), (2, "traced again in each step")])
def test_a_function_that_tensorflow_traces_again_and_again(count, cause):
    text = "WARNING:tensorflow:{0} out of the last {0} calls to <function Training.step at 0x7f34> "
    lines = [text.format(n) + "triggered tf.function retracing. ..." for n in (5, 6)[:count]]
    evidence = stays([], [], lines=lines)
    assert cause_of(evidence) == cause
    assert not cause or "Training.step" in find(evidence)[0].where
