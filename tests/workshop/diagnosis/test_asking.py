"""Asked of ranks that live, have ended, never were or are not ours; and of damaged files."""

import importlib
import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from unittest import mock

import psutil
import pytest
from emulator_harness import captured

import workshop
from workshop.diagnosis import reading
from workshop.diagnosis.answer import Answer, diagnose
from workshop.diagnosis.evidence import Evidence, NoEvidence, Rank
from workshop.diagnosis.reading import read_record
from workshop.diagnosis.rules import find
from workshop.launch import recording
from workshop.launch.processes import Processes, free_port

# Rank 1 comes two steps late to a collective: asked meanwhile, it hangs; then it goes on.
SCRIPT = """
import os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="env://")
rank = dist.get_rank()
print("pid", os.getpid(), flush=True)
for step in range(3):
    dist.all_reduce(torch.ones(4))
def elsewhere():
    while not Path(sys.argv[1]).exists():
        time.sleep(0.05)
if rank == 1:
    elsewhere()
dist.all_reduce(torch.ones(8))
print("end", flush=True)
dist.barrier()
"""


@pytest.fixture(autouse=True)
def records_of_the_test(tmp_path, monkeypatch):
    """Records of this test alone."""
    for module in (recording, reading):
        monkeypatch.setattr(module, "RECORDS", tmp_path / "records")
    return tmp_path / "records"


@pytest.fixture
def recorder(monkeypatch):
    """The recorder's module, which ranks find in a folder of its own."""
    # Not syspath_prepend: it wants a whole pkg_resources, and the SDK brings one of its own.
    monkeypatch.setattr(sys, "path", [str(recording.RECORDER), *sys.path])
    return importlib.import_module("workshop_recorder")


@pytest.fixture(scope="module")
def hanging(tmp_path_factory):
    """Two ranks of which rank 0 waits. The last test of them lets them end, by the file `go`."""
    folder = tmp_path_factory.mktemp("hanging")
    (folder / "train.py").write_text(SCRIPT)
    command = [sys.executable, folder / "train.py", folder / "go"]
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": 2}
    variables |= {"GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0"}
    each = [{"RANK": rank} for rank in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "RECORDS", folder / "records")
        with Processes([command] * 2, variables, each=each) as processes:
            processes.until(lambda: len(processes.lines) >= 2, 120)
            time.sleep(reading.ANSWER_SECONDS)
            processes.go = folder / "go"
            yield processes


def test_a_damaged_dump_is_reported_and_the_rest_is_read(hanging, tmp_path):
    diagnose(hanging.record)
    copy = tmp_path / "copy"
    shutil.copytree(hanging.record, copy)
    dump = next(copy.glob("*.fr"))
    for content in (dump.read_bytes()[:50], b"", pickle.dumps(os.getcwd), b"\x80\x04K\x01."):
        dump.write_bytes(content)
        evidence = read_record(copy)
        assert "dump is damaged" in evidence.problems[0] and len(evidence.ranks) == 2
    (copy / f"{dump.stem}.json").write_text("{")
    assert len(read_record(copy).ranks) == 1


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (None, "No ranks have been started here yet"),
        ("nowhere/", "is no folder of recorded ranks"),
        (2**22 + 1, "There is no process"),
        (os.getppid(), "was started without a recorder"),
    ],
)
def test_where_nothing_is_known_that_is_said(job, words):
    with pytest.raises(NoEvidence, match=words):
        diagnose(job)


GIL = """
import time
import torch.distributed
print("begin", flush=True)
time.sleep(1)
def computes_alone():
    sum(range(10**9))  # one call of C: no other thread of Python runs meanwhile
computes_alone()
print("end", flush=True)
"""


def test_a_rank_that_cannot_answer_shows_its_stack_and_goes_on(tmp_path):
    (tmp_path / "train.py").write_text(GIL)
    with Processes([[sys.executable, tmp_path / "train.py"]], {"RANK": 0}) as processes:
        processes.until(lambda: processes.lines, 120)
        time.sleep(2)
        text = str(diagnose(processes.record))
        assert "rank 0: runs, but a call keeps it from" in text and "in computes_alone" in text
        processes.wait(120)
    assert [line.text for line in processes.lines] == ["begin", "end"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_users_record_is_not_read(hanging):
    """Asked by nobody: the folder may be read there, and not written."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setuid(65534)
            read_record(hanging.record)
            os.write(write, b"read")
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    answer = os.read(read, 1000).decode()
    assert answer.startswith("NoEvidence:") and "belongs to another user" in answer


def test_somebody_elses_process_is_not_read(monkeypatch):
    monkeypatch.setattr(psutil.Process, "environ", mock.Mock(side_effect=psutil.AccessDenied(1)))
    with pytest.raises(NoEvidence, match="belongs to another user"):
        diagnose(os.getpid())


def test_at_a_shell(command, tmp_path, hanging):
    status, output = command("why", f"{hanging.record}/")
    assert (status, "Evidence:" in output) in ((0, True), (1, True))
    status, output = command("why", f"{tmp_path}/none/")
    assert status == 2 and "is no folder" in output


def test_a_hang_is_explained_and_the_ranks_go_on(hanging):
    deadline = time.monotonic() + 60
    while not (answer := diagnose(hanging.record)).cause and time.monotonic() < deadline:
        time.sleep(1)  # a busy machine: not there yet
    began = time.monotonic()
    text = str(workshop.why(hanging.record))
    assert time.monotonic() - began < 5
    first, second, third = text.splitlines()[:3]
    assert answer.evidence.running and answer.cause == "one rank does something else"
    assert "rank 0 waits in all_reduce no. 4 (8 Float) at train.py:" in first
    assert "Rank 1 has not called it: it is at train.py:" in second and "in elsewhere" in second
    assert third.startswith("Do: ")
    pid = next(int(line.text.split()[1]) for line in hanging.lines if line.text.startswith("pid"))
    assert diagnose(pid).cause == answer.cause, "a process's id leads to its record"
    hanging.go.touch()
    hanging.wait(600)  # since their start: other tests have asked them before
    assert [line.text for line in hanging.lines].count("end") == 2, "it was not harmed"
    ended = diagnose(hanging.record)
    assert (ended.cause, ended.evidence.running) == ("", False), "it ended well"


def test_ranks_started_at_a_shell_are_recorded(command, tmp_path):
    """For longer than a look takes, and to their end."""
    (tmp_path / "train.py").write_text(
        "import torch.distributed, time; time.sleep(1); print('end')"
    )
    status, output = command("record", sys.executable, tmp_path / "train.py")
    assert status == 0 and output.splitlines()[-1] == "end"


SPAWNED = """
import time, torch, torch.distributed as dist, torch.multiprocessing as mp
def train(rank):
    dist.init_process_group("gloo", rank=rank, world_size=2, init_method="tcp://127.0.0.1:{port}")
    for _ in range(3):
        dist.all_reduce(torch.ones(8))
        time.sleep(0.5)
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
"""


def test_spawned_ranks_are_known_after_they_have_left_each_other(command, tmp_path):
    """No variable says which rank they were."""
    (tmp_path / "train.py").write_text(SPAWNED.replace("{port}", str(free_port())))
    assert command("record", sys.executable, tmp_path / "train.py")[0] == 0
    status, output = command("why", f"{reading.newest_record()}/")
    assert status == 2 and "Its 2 ranks called the same collectives" in output, output


LOOKS = """
import sys, threading
sys.path.append(sys.argv[1])
import torch, workshop_recorder as recorder
model = torch.nn.Linear(2, 2)
optimizer, loader = torch.optim.SGD(model.parameters(), 0.1), torch.utils.data.DataLoader([1])
looks = []
def look():
    while len(looks) < 12:
        looks.append(recorder.objects(recorder.instances(recorder.kinds()), ended=False))
thread = threading.Thread(target=look)
thread.start()
while thread.is_alive():  # as dataclasses and enums do at imports
    tuple(number for number in range(50))
assert len(looks[-1]["optimizers"]) == len(looks[-1]["loaders"]) == 1, looks
"""


# With sys._current_frames() alone, Python 3.11 comes to a standstill at once.
SAMPLES = """
import gc, sys, threading, time
sys.path.append(sys.argv[1])
import workshop_recorder
class Cycle:
    def __init__(self):
        self.itself = self
    def __del__(self):
        time.sleep(0)  # another thread's turn
def sample():
    while True:
        workshop_recorder.frame_of(main)
        Cycle()
main, end = threading.main_thread().ident, time.monotonic() + 2
gc.set_threshold(5)
threading.Thread(target=sample, daemon=True).start()
while time.monotonic() < end:
    Cycle()
    threading.Thread(target=int).start()  # a new thread takes the interpreter's lock
"""


def test_a_sitecustomize_of_the_environment_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('of the environment')\n")
    path = os.pathsep.join([str(recording.RECORDER), str(tmp_path)])
    variables = {**os.environ, "PYTHONPATH": path, "WORKSHOP_RECORD": str(tmp_path)}
    words = [sys.executable, "-c", "import sys; print(sys.path[1])"]
    done = captured(words, env=variables, check=True)
    lines = ["of the environment", str(recording.RECORDER)]
    assert done.stdout.splitlines() == lines and not done.stderr


# A dump has its callers, without torch's compiler, whose import takes a second and breaks one that
# the script has begun. A share of the weights is not compared: each rank has another.
RECORDS = """
import pickle, sys
sys.path.append(sys.argv[1])
import torch, workshop_recorder as recorder
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(3))
(entry,) = pickle.loads(recorder.flight_recorder())["entries"]
assert entry["frames"][-1]["line"] == 7, entry
assert not [name for name in sys.modules if name.startswith("torch._inductor")]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
assert recorder.has_ddp(recorder.objects(recorder.instances(recorder.kinds()), ended=False))
from torch.distributed.optim import ZeroRedundancyOptimizer
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
assert not recorder.has_ddp(recorder.objects(recorder.instances(recorder.kinds()), ended=False))
import torch._inductor  # as a script may afterwards
assert torch._inductor.config
"""


PROGRAMS = {
    "looking at objects does not break what is being made": LOOKS,
    "looking at a stack never stops the script": SAMPLES,
    "a group's calls and DDP are recorded": RECORDS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_a_script_with_the_recorder(name):
    command = [sys.executable, "-c", PROGRAMS[name], recording.RECORDER]
    environment = os.environ | {"TORCH_FR_BUFFER_SIZE": "10"}
    subprocess.run(command, env=environment, check=True, timeout=120)


def test_a_parameter_server_at_whose_port_nobody_listens(recorder, monkeypatch):
    """One of two servers is there; a task that has waited for long asks for both."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        there, gone = (f"127.0.0.1:{port}" for port in (server.getsockname()[1], free_port()))
        cluster = {"ps": [there, gone], "worker": ["127.0.0.1:1"]}
        config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        note = recorder.tensorflow_task(deep=True)
    assert note == {"task": "worker 0", "unreached": {"ps 1": gone}}
    for seconds, cause in ((100, "server not there"), (10, "")):
        task = Rank(-1, note | {"began": 0, "time": seconds})
        evidence = Evidence("job", tasks=[task])
        answer = Answer(evidence, find(evidence))
        assert answer.cause == cause and "worker 0: was killed" in str(answer)


def test_what_the_recorder_compares(recorder):
    """Data sets by what they hold, weights by a few numbers, and nothing of sharded ones."""
    import torch
    from torch.utils.data import Subset, TensorDataset

    x = torch.arange(400.0).reshape(100, 4)
    sets = [TensorDataset(x[0::2]), TensorDataset(x[1::2]), Subset(TensorDataset(x), range(5))]
    sets += [Subset(TensorDataset(x), range(5, 10)), TensorDataset(x)]
    prints = [recorder.fingerprint(data) for data in sets]
    subsets = [recorder.subset_hash(data, torch.utils.data) for data in sets]
    assert subsets[2] != subsets[3] and [*subsets[:2], subsets[4]] == [None] * 3
    assert len(set(prints)) == 5 and recorder.fingerprint(TensorDataset(x.clone())) == prints[-1]

    class Sampler:
        def __init__(self, rank):
            self.rank = rank

        def __len__(self):
            return 0  # and so it is false

    samplers = [Sampler(rank) for rank in (0, 1, 1)]
    loaders = [torch.utils.data.DataLoader(x, batch_sampler=sampler) for sampler in samplers]
    notes = [recorder.describe_loader(loader, torch.utils.data) for loader in loaders]
    assert [note["data"] == notes[1]["data"] for note in notes] == [False, True, True]
    assert [note["batch_sampler"] for note in notes] == ["Sampler"] * 3
    linear = torch.nn.Linear(4, 2)
    before = recorder.hash_of_some(torch.optim.SGD(linear.parameters(), 0.1))
    with torch.no_grad():
        linear.bias += 1
    assert before != recorder.hash_of_some(torch.optim.SGD(linear.parameters(), 0.1)) is not None
    assert recorder.hash_of_some(torch.optim.SGD([x], 0.1)) is None  # no Parameter: such as DTensor
    optimizer = torch.optim.SGD(linear.parameters(), 0.1)
    assert recorder.is_idle(optimizer)
    noted = SimpleNamespace(hashes={}, rates={})
    for step in range(0, 2560, 64):
        recorder.Recorder.note_weights(noted, optimizer, step)
    (rates,) = noted.rates.values()
    assert list(rates)[:4] == [0, 64, 128, 256] and len(rates) == recorder.MAX_STEPS + 7
    linear(x).sum().backward()
    assert not recorder.is_idle(optimizer)
    assert recorder.is_idle(torch.optim.SGD(linear.parameters(), 0.0))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux paces a connection")
def test_a_link_that_is_limited_is_noted(recorder):
    assert not recorder.sockets_are_paced()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, recorder.PACING, 1_000_000)
        assert recorder.sockets_are_paced()


def test_the_scripts_other_threads_are_noted(recorder):
    def decode():
        ends.wait(60)

    def names():
        noted = recorder.Recorder.other_threads(SimpleNamespace(main=main))
        return [(name, function) for name, _, _, function in noted]

    main, ends = threading.main_thread().ident, threading.Event()
    thread = threading.Thread(target=decode, name="loader")
    thread.start()
    assert ("loader", "decode") in names()
    ends.set()
    thread.join()
    assert "loader" not in dict(names())


def test_a_function_is_seen_not_the_generator_in_it(recorder, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    frames = [("/a/train.py", 9, "<genexpr>"), ("/a/train.py", 8, "compute")]
    seen = SimpleNamespace(frames=lambda: frames, stack=[], position=int, places={}, samples=[])
    recorder.Recorder.sample(seen)
    assert list(seen.places) == [("compute", "/a/train.py", 8, "compute")]


def test_a_process_whose_path_is_made_of_a_ranks_is_recorded_too():
    """As SageMaker's toolkit starts ranks, also where the standard library has a sitecustomize."""
    code = "import os, sys; print(os.pathsep.join(sys.path))"
    variables = os.environ | {"PYTHONPATH": str(recording.RECORDER)}
    done = captured([sys.executable, "-c", code], env=variables, check=True)
    folders = done.stdout.strip().split(os.pathsep)
    assert folders.index(str(recording.RECORDER)) < folders.index(os.path.dirname(os.__file__))
