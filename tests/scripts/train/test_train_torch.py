"""The PyTorch files of scripts/train, each copied alone and started as its docstring says."""

import io
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from script_harness import (
    DEMOS,
    TRAIN,
    alone,
    by_hand,
    channels,
    copied,
    dies,
    difference,
    finish,
    free_port,
    module,
    mpirun,
    start,
    torchrun,
    weights,
)

import local_sagemaker

STAND_IN = Path(local_sagemaker.__file__).parent / "image" / "site"
# 22 steps an epoch: 30 steps need the second epoch's order too.
STEPS = ["--max-steps", "30"]
# Float32 sums in another order differ by an ulp a step: 3e-8 was measured on weights up to 0.34.
TOLERANCE = 3e-7
TORCH = tuple(int(part) for part in metadata.version("torch").split(".")[:2])
RECENT = pytest.mark.skipif(TORCH < (2, 6), reason="fully_shard and init_sync need PyTorch 2.6")
pytestmark = pytest.mark.timeout(600)  # a busy machine needs a minute to start two ranks


def losses(done) -> list[float]:
    return [one["train_loss"] for kind in ("step", "epoch") for one in done.events(kind)]


@pytest.fixture(scope="module")
def one(digits, tmp_path_factory):
    """train_torch.py after 30 steps: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("one")
    script = copied("train_torch.py", folder)
    return start(alone(), script, *STEPS, *channels(digits)), folder


@pytest.fixture(scope="module")
def ddp(digits, tmp_path_factory):
    """train_torch_ddp.py on two ranks after 30 steps: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("ddp")
    script = copied("train_torch_ddp.py", folder)
    return start(torchrun(2), script, *STEPS, *channels(digits)), folder


def test_two_ranks_train_what_one_process_trains(one, ddp):
    assert [e["world_size"] for e in ddp[0].events("start")] == [2]
    (said,) = ddp[0].events("start")
    assert (said["local_batch_size"], said["device"], said["backend"]) == (32, "cpu", "gloo")
    assert len(ddp[0].hashes) == 2 and len(set(ddp[0].hashes.values())) == 1
    assert difference(one[1], ddp[1]) <= TOLERANCE
    assert len(losses(one[0])) == 5  # steps 10, 20, 30 and two epochs
    assert losses(ddp[0]) == pytest.approx(losses(one[0]), abs=5e-6)


def test_reaches_the_accuracy_and_is_served(digits, tmp_path):
    import torch

    done = start(alone(), copied("train_torch.py", tmp_path), *channels(digits))
    assert done.accuracy >= 0.96
    assert len(done.events("epoch")) == 20 and len(done.events("step")) == 44
    assert min(e["samples_per_second"] for e in done.events("epoch")) > 0
    copied("inference.py", tmp_path)
    serving = module("inference.py", tmp_path)
    model = serving.model_fn(str(tmp_path / "model"))
    with np.load(digits / "test" / "part-00000.npz") as part:
        images, labels = part["images"], part["labels"]
    body, accept = serving.output_fn(np.zeros((1, 10), np.float32), "application/x-npy")
    assert accept == "application/x-npy" and body[:6] == b"\x93NUMPY"
    request = serving.input_fn(json.dumps(images.tolist()), "application/json")
    answer = json.loads(serving.output_fn(serving.predict_fn(request, model), "*/*")[0])
    right = float((np.argmax(answer, axis=1) == labels).mean())
    assert right == pytest.approx(done.accuracy, abs=1e-6)
    assert np.allclose(np.sum(answer, axis=1), 1, atol=1e-5)
    assert torch.is_grad_enabled()
    with pytest.raises(ValueError, match="content type text/csv"):
        serving.input_fn("", "text/csv")


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([("DistributedDataParallel(model)", "model")], id="no wrap"),
        pytest.param(
            [("        sampler.set_epoch(epoch)", "        # forgotten")],
            id="no set_epoch",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            [
                ("torch.manual_seed(args.seed)", "torch.manual_seed(args.seed + rank)"),
                (
                    "DistributedDataParallel(model)",
                    "DistributedDataParallel(model, init_sync=False)",
                ),
            ],
            id="no broadcast",
            marks=[pytest.mark.soak, RECENT],  # init_sync
        ),
    ],
)
def test_what_is_left_out_is_noticed(digits, one, tmp_path, edits):
    script = copied("train_torch_ddp.py", tmp_path, *edits)
    done = start(by_hand(2), script, *STEPS, *channels(digits))
    apart = len(set(done.hashes.values())) == 2
    assert apart or difference(one[1], tmp_path) > 1000 * TOLERANCE


@pytest.mark.soak  # lesson 01 and test_train_tf.py run such jobs
@pytest.mark.parametrize(
    ("name", "launcher"),
    [
        ("train_torch_ddp.py", "torch_distributed"),
        ("train_torch_ddp.py", "mpi"),
        pytest.param("train_torch_fsdp.py", "torch_distributed", marks=RECENT),
    ],
)
def test_a_job_trains_what_ddp_trains_by_hand(job_of, ddp, name, launcher):
    flags = [*STEPS, "--threads-per-rank", "1"]
    assert job_of(name, launcher, flags).hashes == ddp[0].hashes


def test_ddp_starts_under_mpirun_and_alone(digits, one, ddp, tmp_path):
    script = copied("train_torch_ddp.py", tmp_path / "alone")
    start(alone(), script, *STEPS, *channels(digits))
    assert difference(one[1], tmp_path / "alone") == 0
    if not Path(mpirun(2)[0]).exists():
        pytest.skip("no mpirun beside the Python")
    script = copied("train_torch_ddp.py", tmp_path / "mpirun")
    done = start(mpirun(2), script, *STEPS, *channels(digits), MASTER_PORT=free_port())
    assert done.hashes == ddp[0].hashes


def test_smddp_trains_what_ddp_trains(digits, ddp, tmp_path):
    script = copied("train_torch_smddp.py", tmp_path)
    stand_in = {"PYTHONPATH": str(STAND_IN)}
    done = start(by_hand(2), script, *STEPS, *channels(digits), **stand_in)
    assert done.hashes == ddp[0].hashes


def test_data_parallel_trains_what_one_process_trains(digits, one, tmp_path):
    done = start(alone(), copied("train_torch_dp.py", tmp_path), *STEPS, *channels(digits))
    assert done.events("parallel")[0]["replicas"] >= 1
    assert done.hashes == one[0].hashes


# Counts the bytes that DDP gives to its all-reduce.
COUNT = """    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    sent = []
    def hook(group, bucket):
        sent.append(bucket.buffer().nbytes)
        return allreduce_hook(group, bucket)
    parallel_model.register_comm_hook(None, hook)
    step = resume("""
SHOW = '    emit("sent", bytes=sum(sent))\n    leave_ranks()'


def options(digits, folder, *flags):
    """Run train_torch_ddp_options.py; return what it printed and the bytes sent for 30 steps."""
    counted = [("    step = resume(", COUNT), ("    leave_ranks()", SHOW)]
    script = copied("train_torch_ddp_options.py", folder, *counted)
    done = start(by_hand(2), script, *STEPS, *channels(digits), *flags)
    assert len(set(done.hashes.values())) == 1
    return done, done.events("sent")[0]["bytes"]


def test_accumulation_sends_once_a_step(digits, one, tmp_path):
    """And not with each of its four parts, as it would without no_sync()."""
    done, sent = options(digits, tmp_path, "--accumulate", "4")
    assert difference(one[1], tmp_path) <= TOLERANCE
    assert sent == 30 * done.events("start")[0]["gradient_bytes"]


@pytest.mark.soak
def test_bf16_stays_close(digits, one, tmp_path):
    done, _ = options(digits, tmp_path, "--bf16", "1")
    # bfloat16 has 8 bits of mantissa: 0.4 % of a loss of 2.3 is 0.009.
    assert losses(done) == pytest.approx(losses(one[0]), abs=0.009)
    assert difference(one[1], tmp_path) > 1000 * TOLERANCE


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("train_torch_ddp.py", 2),
        pytest.param("train_torch_fsdp.py", 2, marks=RECENT),
        pytest.param("train_torch_ddp.py", 3, marks=pytest.mark.soak),
    ],
)
def test_goes_on_when_torchrun_starts_it_again(digits, ddp, tmp_path, name, ranks):
    """Rank 1 dies in step 26. The others end, all start again and resume at step 25.

    And FSDP trains what DDP trains, to the last bit.

    With three ranks the order in which gradients are added shows in the weights: so DDP must group
    them after the restart as it did before.
    """
    flags = [*STEPS, *channels(digits), "--global_batch_size", 66 if ranks == 3 else 64]
    whole, folder = ddp
    if ranks == 3:
        folder = tmp_path / "whole"
        whole = start(torchrun(3), copied(name, folder), *flags)
    first_life = 'os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"'
    script = copied(name, tmp_path / "cut", dies(26, f"rank == 1 and {first_life}"))
    again = [*torchrun(ranks), "--max-restarts", "1"]
    done = start(again, script, *flags, "--checkpoint-dir", "kept", "--checkpoint-every", "5")
    assert [e["step"] for e in done.events("resumed")] == [25]
    assert done.hashes == whole.hashes and len(set(done.hashes.values())) == 1
    assert done.events("step")[-1] == whole.events("step")[-1]  # step 30
    assert difference(folder, tmp_path / "cut") == 0
    if "ddp" in name:
        assert [path.name for path in (tmp_path / "cut/kept").iterdir()] == ["checkpoint.pt"]


def test_resumes_to_the_same_weights(one, digits, tmp_path):
    """Killed in step 26, and started again with the same command."""
    script = copied("train_torch.py", tmp_path, dies(26, 'not Path("second").exists()'))
    flags = [*STEPS, *channels(digits), "--checkpoint-dir", "kept", "--checkpoint-every", "5"]
    assert start(alone(), script, *flags, check=False).code != 0
    (tmp_path / "second").touch()
    done = start(alone(), script, *flags)
    assert [e["step"] for e in done.events("resumed")] == [25]
    assert done.hashes == one[0].hashes


def pictures(folder: Path, shape: tuple[int, ...], examples: int) -> Path:
    """Two channels of generated images in which a bright row tells the class; return `folder`."""
    random = np.random.default_rng(0)
    for channel in ("training", "test"):
        labels = random.integers(0, 10, examples)
        images = random.integers(0, 100, (examples, *shape), dtype=np.uint8)
        images[np.arange(examples), labels % shape[0]] += 150
        (folder / channel).mkdir(parents=True)
        np.savez(folder / channel / "part-00000.npz", images=images, labels=labels)
    return folder


def test_the_deep_model_trains_on_colour(tmp_path):
    """32 x 32 x 3, CIFAR-10's form: many tensors of 25 to 100 MB together, and the loss falls."""
    data = pictures(tmp_path / "data", (32, 32, 3), 16)
    flags = ["--model", "deep", "--global-batch-size", "8", "--epochs", "3", "--log-every", "0"]
    script = copied("train_torch.py", tmp_path / "deep")
    done = start(alone(), script, *flags, *channels(data), "--learning-rate", "0.01")
    assert 25e6 < done.events("start")[0]["gradient_bytes"] < 100e6
    assert len(weights(tmp_path / "deep")) > 50
    losses = [e["train_loss"] for e in done.events("epoch")]
    assert losses[-1] < losses[0]
    copied("inference.py", tmp_path)
    serving = module("inference.py", tmp_path)
    model = serving.model_fn(tmp_path / "deep" / "model")
    assert serving.predict_fn(np.zeros((2, 32, 32, 3), np.uint8), model).shape == (2, 10)


@pytest.mark.parametrize("shape", [(4, 4, 1), (32, 32, 3), (7, 9, 2)])
@pytest.mark.parametrize("kind", ["small", "deep"])
def test_images_of_any_size(shape, kind):
    import torch

    model = module("train_torch.py", TRAIN).Classifier(kind, shape, 16)
    logits = model(torch.zeros((2, *shape), dtype=torch.uint8))
    assert logits.shape == (2, 10)
    logits.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    ("name", "flags", "said"),
    [
        (
            "train_torch.py",
            ["--training", "absent"],
            "absent can't be used (no part-*.npz in it). Expected: part-*.npz with images",
        ),
        ("train_torch.py", ["--global-batch-size", "99999"], "at most the 1437 examples"),
        ("train_torch.py", ["--max_step", "3"], "unrecognized arguments: --max_step"),
        ("train_torch.py", ["--epochs", "0"], "--epochs 0: expected a number above 0"),
        (
            "train_torch.py",
            ["--learning-rate", "nan"],
            "--learning_rate nan: expected a number above 0",
        ),
        (
            "train_torch_ddp.py",
            ["--learning-rate", "inf"],
            "--learning_rate inf: expected a number",
        ),
        ("train_torch.py", ["--max-steps", "-1"], "--max_steps -1: expected a number above 0"),
        ("train_torch.py", ["--model", "depe"], "invalid choice: 'depe'"),
        ("train_torch_ddp.py", ["--save-to", "a-file"], "can't write to a-file ("),
        ("train_torch.py", ["--checkpoint-dir", "/proc/x"], "can't write to /proc/x ("),
        (
            "train_torch_ddp.py",
            ["RANK=x"],
            "RANK, LOCAL_RANK, a WORLD_SIZE or SM_HOSTS can't be read",
        ),
        ("train_torch_smddp.py", ["SM_HOSTS=algo-1"], "or SM_HOSTS can't be read: Expecting value"),
        ("train_torch_ddp.py", ["--global-batch-size", "64"], "a multiple of 3 ranks"),
        ("train_torch_smddp.py", [], "SMDDP is not installed"),
        ("train_torch_dp.py", [], "use train_torch_ddp.py instead"),
        ("train_torch_ddp_options.py", ["--accumulate", "5"], "a divisor of each rank's 22"),
    ],
)
def test_wrong_input_is_one_sentence(monkeypatch, digits, tmp_path, name, flags, said):
    script = module(name, TRAIN)
    monkeypatch.chdir(tmp_path)
    Path("a-file").touch()
    given = {"RANK": "0", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    given = {} if name == "train_torch.py" else given | {"MASTER_PORT": "1", "SM_HOSTS": "[]"}
    variables = [flag for flag in flags if "=" in flag]
    for variable, value in [*given.items(), *(one.split("=") for one in variables)]:
        monkeypatch.setenv(variable, value)
    flags = [flag for flag in flags if flag not in variables]
    monkeypatch.setattr(sys, "argv", [name, *map(str, channels(digits)), *flags])
    if "ddp" in name and not variables and "smddp" not in name:  # as if it had met the others
        ranks = SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda: 3)
        monkeypatch.setattr(script, "dist", ranks)
        monkeypatch.setattr(script, "join_ranks", lambda: "cpu")
        monkeypatch.setattr(script, "DistributedSampler", lambda dataset, **options: None)
        if "--accumulate" in flags:
            sys.argv += ["--global-batch-size", "66"]
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert said in ended.value.code and ended.value.code.startswith("error: ")
    assert "\n" not in ended.value.code


JOINING = [f"train_torch_{way}.py" for way in ("ddp", "ddp_options", "smddp")]
JOINING += [pytest.param("train_torch_fsdp.py", marks=RECENT), "common/ranks_torch.py"]
PLACES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture
def join(monkeypatch):
    """A function: one rank's join_ranks with these variables and GPUs here; what it called."""

    def join(name: str, gpus: int = 0, **variables: str) -> tuple[list, object]:
        script = module(name, DEMOS if "common" in name else TRAIN)
        calls = []
        monkeypatch.setattr(script.torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(
            script.torch.cuda, "set_device", lambda device: calls.append(("GPU", device))
        )
        monkeypatch.setattr(script.torch, "set_num_threads", lambda threads: None)
        monkeypatch.setattr(
            script.dist, "init_process_group", lambda backend, **place: calls.append(backend)
        )
        smddp = ["smdistributed", "dataparallel", "torch", "torch_smddp"]
        for depth in range(1, len(smddp) + 1):
            monkeypatch.setitem(sys.modules, ".".join(smddp[:depth]), script)
        for variable in PLACES:
            monkeypatch.setenv(variable, "")  # so that what join_ranks sets is gone after the test
            monkeypatch.delenv(variable)
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        device = script.join_ranks(*(["smddp"] if "smddp" in name else []))
        return calls, device

    return join


@pytest.mark.parametrize("name", JOINING)
def test_on_a_machine_with_several_gpus_each_rank_takes_its_own(join, name):
    """Before it meets the others: broadcast_object_list, barriers, FSDP use the current device."""
    of_torchrun = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    calls, device = join(name, gpus=2, **of_torchrun)
    assert calls == [("GPU", 1), "smddp" if "smddp" in name else "nccl"]
    assert "common" in name or str(device) == "cuda:1"
    # A GPU that two ranks would have to share is left alone: NCCL refuses to share one.
    calls, device = join(name, gpus=1, **of_torchrun)
    assert calls == ["smddp" if "smddp" in name else "gloo"]
    assert "common" in name or str(device) == "cpu"  # and `start` says so


def of_mpirun(rank: int, here: int) -> dict[str, str]:
    """The variables of a rank of two, `here` of them on its machine."""
    found = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank % here, "LOCAL_SIZE": here}
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in found.items()}


@pytest.mark.parametrize("name", JOINING)
def test_ranks_of_several_instances_meet_on_the_first(join, name):
    """Whatever each has inherited: an image sets MASTER_PORT, and mpirun doesn't hand it on."""
    inherited = [{"MASTER_ADDR": "algo-1", "MASTER_PORT": "7777"}, {}]
    for rank in (0, 1):
        hosts = {"SM_HOSTS": '["algo-1", "algo-2"]'}
        join(name, **inherited[rank], **of_mpirun(rank, here=1), **hosts)
        assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("algo-1", "29500")
    # Where all ranks are on one machine its name need not be known to it.
    join(name, **of_mpirun(1, here=2), **hosts)
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"
    # What torchrun says holds.
    of_torchrun = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    join(name, **of_torchrun, **hosts, MASTER_ADDR="algo-2", MASTER_PORT="7777")
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("algo-2", "7777")


def test_ranks_meet_who_have_inherited_different_ports(tmp_path):
    script = copied("train_torch_ddp.py", tmp_path, ('[0], "29500"', f'[0], "{free_port()}"'))
    meet = "import torch; from train_torch_ddp import *; join_ranks(); print(dist.get_world_size()"
    meet += ", mean_over_ranks(torch.ones(1)))"
    hosts = {"SM_HOSTS": '["127.0.0.1", "127.0.0.2"]'}
    kept = {name: value for name, value in os.environ.items() if name not in PLACES}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", meet],
            env=kept | of_mpirun(rank, here=1) | hosts | {"MASTER_PORT": free_port()},
            cwd=script.parent,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        assert [rank.communicate(timeout=90)[0] for rank in ranks] == ["2 1.0\n"] * 2
    finally:
        for rank in ranks:
            rank.kill()


IMAGES, LABELS = np.zeros((64, 8, 8, 1), np.uint8), np.arange(64) % 10
NPZ = io.BytesIO()
np.savez(NPZ, images=IMAGES, labels=LABELS)
DAMAGED = {
    "no file": None,
    "a text": b"label,pixel",
    "cut off": NPZ.getvalue()[:2000],
    "floats": {"images": IMAGES / 255, "labels": LABELS},
    "no channels": {"images": IMAGES[..., 0], "labels": LABELS},
    "a label too few": {"images": IMAGES, "labels": LABELS[1:]},
    "a label of 10": {"images": IMAGES, "labels": LABELS + 1},
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_data_is_one_sentence(tmp_path, what):
    """`load` is the same text in all PyTorch files; TensorFlow's have it too."""
    part, arrays = tmp_path / "training" / "part-00000.npz", DAMAGED[what]
    folder = part.parent
    folder.mkdir()
    if isinstance(arrays, bytes):
        part.write_bytes(arrays)
    elif arrays:
        np.savez(part, **arrays)
    with pytest.raises(SystemExit) as ended:
        module("train_torch.py", TRAIN).load(str(folder))
    said = ended.value.code
    assert said.startswith(f"error: {folder} can't be used (") and "\n" not in said
    assert "Expected: part-*.npz with images, uint8" in said and "data_prep digits" in said


@pytest.mark.parametrize("what", ["empty", "cut off", "text", "of another model", "a folder"])
def test_a_checkpoint_that_cannot_be_used_is_one_sentence_and_is_kept(tmp_path, what):
    import torch

    script, path = module("train_torch.py", TRAIN), tmp_path / "checkpoint.pt"
    other, model = (script.Classifier("small", (8, 8, 1), units) for units in (8, 16))
    script.save_checkpoint(str(tmp_path), 3, other, torch.optim.SGD(other.parameters()))
    found = {"empty": b"", "cut off": path.read_bytes()[:500], "text": b"years of work"}
    if what in found:
        path.write_bytes(found[what])
    elif what == "a folder":
        path.unlink()
        path.mkdir()
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(SystemExit) as ended:
        script.resume(str(tmp_path), model, torch.optim.SGD(model.parameters()))
    said = ended.value.code
    assert said.startswith(f"error: {path} can't be used (") and "Move it away" in said
    assert "\n" not in said and (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(
    "name",
    ["train_torch_ddp.py", pytest.param("train_torch_fsdp.py", marks=[RECENT, pytest.mark.soak])],
)
def test_ranks_say_once_what_is_wrong(digits, tmp_path, name):
    script, kept = copied(name, tmp_path), tmp_path / "kept"
    kept.mkdir()
    (kept / "checkpoint.pt").write_bytes(b"years of work")
    flags = [*STEPS, *channels(digits), "--checkpoint-dir", "kept"]
    done = start(torchrun(2), script, *flags, check=False)
    assert done.code != 0 and done.stderr.count("error: kept/checkpoint.pt can't be used") == 1
    assert "Connection closed" not in done.stderr and f'/{name}", line' not in done.stderr
    assert (kept / "checkpoint.pt").read_bytes() == b"years of work"


NORM = (
    "layers = [conv(channels, 16), nn.ReLU()",
    "layers = [conv(channels, 16), nn.BatchNorm2d(16)",
)


def test_a_model_with_batch_norm_and_dropout(digits, tmp_path):
    """Testing changes nothing in it, and the ranks' weights are the same: a reader puts it in."""
    import torch

    script = copied("train_torch_ddp.py", tmp_path, NORM)
    done = start(by_hand(2), script, *STEPS, *channels(digits))
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1
    evaluate = module("train_torch_ddp.py", tmp_path).evaluate
    pixels = torch.rand(64, 8)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(8), torch.nn.Dropout(), torch.nn.Linear(8, 10))
    right = {evaluate(model, pixels, torch.arange(64) % 10, "cpu") for _ in range(20)}
    assert len(right) == 1 and model.training and not model[0].running_mean.any()


def uneven(how):
    """Two ranks with unequally many batches."""
    return finish([*by_hand(2), DEMOS / "uneven_data_torch.py", "--how", how], False, 120)


@pytest.mark.soak  # no lesson runs it
def test_uneven_data_hangs_and_join_helps():
    done = uneven("hang")
    assert done.code == 1
    (waiting,) = [e for e in done.events("hung") if e["rank"] == 1]
    assert waiting["step"] == 3 and "Timed out" in waiting["reason"]
    done = uneven("join")
    assert done.code == 0
    ends = {e["rank"]: e for e in done.events("done")}
    assert (ends[0]["step"], ends[1]["step"]) == (3, 5)
    assert ends[0]["weight"] == ends[1]["weight"]
    own = [e["gradient"] for e in done.events("step") if e["rank"] == 1]
    assert own == [6, 6, 6, 4, 4]  # (4 x 1 + 4 x 2) / 2, then (0 + 4 x 2) / 2
