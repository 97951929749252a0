"""The PyTorch files of scripts/train, each copied alone and started as its docstring says."""

import json
import os
import re
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from script_harness import (
    DEMOS,
    TRAIN,
    Run,
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
    replaced,
    start,
    torchrun,
)

from workshop.paths import NOTEBOOKS

# 22 steps an epoch: 30 steps need the second epoch's order too.
STEPS = ["--max-steps", "30"]
REFERENCE = (NOTEBOOKS / "reference.py").read_text()
# Float32 sums in another order differ by an ulp a step: 3e-8 was measured on weights up to 0.34.
TOLERANCE = 3e-7
TORCH = tuple(int(part) for part in metadata.version("torch").split(".")[:2])
RECENT = pytest.mark.skipif(TORCH < (2, 6), reason="fully_shard and init_sync need PyTorch 2.6")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
]  # a busy machine needs a minute to start two ranks


def losses(done) -> list[float]:
    return [record["train_loss"] for kind in ("step", "epoch") for record in done.events(kind)]


def train(digits: Path, folder: Path, name: str, *flags, command=(), edits=(), **options) -> Run:
    """Run a copy of a script for 30 steps. command: its start; by default two ranks by hand."""
    script = copied(name, folder, *edits)
    return start(command or by_hand(2), script, *STEPS, *channels(digits), *flags, **options)


@pytest.fixture(scope="module")
def single(digits, tmp_path_factory):
    """train_torch.py after 30 steps: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("one")
    return train(digits, folder, "train_torch.py", command=alone()), folder


@pytest.fixture(scope="module")
def ddp(digits, tmp_path_factory):
    """train_torch_ddp.py on two ranks after 30 steps: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("ddp")
    return train(digits, folder, "train_torch_ddp.py", command=torchrun(2)), folder


def test_two_ranks_train_what_one_process_trains(single, ddp):
    assert [e["world_size"] for e in ddp[0].events("start")] == [2]
    (record,) = ddp[0].events("start")
    assert (record["local_batch_size"], record["device"]) == (32, "cpu")
    assert len(ddp[0].hashes) == 2 and len(set(ddp[0].hashes.values())) == 1
    assert difference(single[1], ddp[1]) <= TOLERANCE
    assert len(losses(single[0])) == 5  # steps 10, 20, 30 and two epochs
    assert losses(ddp[0]) == pytest.approx(losses(single[0]), abs=5e-6)


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
def test_what_is_left_out_is_noticed(digits, single, tmp_path, edits):
    done = train(digits, tmp_path, "train_torch_ddp.py", edits=edits)
    apart = len(set(done.hashes.values())) == 2
    assert apart or difference(single[1], tmp_path) > 1000 * TOLERANCE


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
    hashes = job_of(name, launcher, flags).hashes
    assert hashes == ({0: ddp[0].hashes[0]} if "fsdp" in name else ddp[0].hashes)


@pytest.mark.soak  # lessons 01 and 10 run such jobs
def test_ddp_starts_under_mpirun(digits, ddp, tmp_path):
    if not Path(mpirun(2)[0]).exists():
        pytest.skip("no mpirun beside the Python")
    options = {"command": mpirun(2), "MASTER_PORT": free_port()}
    done = train(digits, tmp_path, "train_torch_ddp.py", **options)
    assert done.hashes == ddp[0].hashes


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.soak), 2])
@RECENT
def test_fsdp_trains_what_ddp_trains(digits, single, ddp, tmp_path, ranks):
    """To the last bit, and on one rank what one process trains. Rank 0 alone gets it whole."""
    done = train(digits, tmp_path, "train_torch_fsdp.py", command=by_hand(ranks))
    assert done.hashes == {0: (single, ddp)[ranks - 1][0].hashes[0]}
    assert difference((single, ddp)[ranks - 1][1], tmp_path) == 0


def test_local_sgd_that_averages_in_every_step_is_ddp(digits, ddp, tmp_path):
    """With momentum, too: the mean of the ranks' momenta is the momentum of the mean gradient."""
    done = train(digits, tmp_path, "train_torch_local_sgd.py", "--sync-every", "1")
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1
    # A displacement is the difference of nearly equal weights, so rounding weighs more: 2e-5 here.
    assert difference(ddp[1], tmp_path) <= 300 * TOLERANCE
    assert [e["syncs"] for e in done.events("epoch")] == [22, 30]


@pytest.mark.soak  # lesson 12 trains with it
def test_diloco_ends_with_one_model(digits, ddp, tmp_path):
    flags = ["--sync-every", "8", "--outer-learning-rate", "0.7", "--outer-momentum", "0.9"]
    done = train(digits, tmp_path, "train_torch_local_sgd.py", *flags)
    assert len(set(done.hashes.values())) == 1
    assert difference(ddp[1], tmp_path) > 1000 * TOLERANCE
    assert [e["syncs"] for e in done.events("epoch")] == [2, 4]  # of 22 and 30 steps


# Counts the bytes that DDP gives to its all-reduce.
COUNT = """    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    sent = []
    def hook(group, bucket):
        sent.append(bucket.buffer().nbytes)
        return allreduce_hook(group, bucket)
    parallel_model.register_comm_hook(None, hook)
    step = resume("""
SHOW = '    emit("sent", bytes=sum(sent))\n    dist.destroy_process_group()'


def accumulated(digits, folder, *changes):
    """Train DDP with the lines that the reference shows; what it printed, and the bytes sent."""
    shown, _ = re.findall(r"# ```python\n((?:# .*\n)+)# ```", REFERENCE)
    lines = "".join(line.removeprefix("# ") + "\n" for line in shown.splitlines())
    lines = replaced(lines, changes)
    text = (TRAIN / "train_torch_ddp.py").read_text()
    first, last = "            loss = cross_entropy(", "            optimizer.step()\n"
    loop = text[text.index(first) : text.index(last) + len(last)]
    edits = [("    step = resume(", COUNT), ("    dist.destroy_process_group()", SHOW)]
    edits += [("import argparse\n", "import argparse\nfrom contextlib import nullcontext\n")]
    done = train(digits, folder, "train_torch_ddp.py", edits=[*edits, (loop, lines)])
    assert len(set(done.hashes.values())) == 1
    return done, done.events("sent")[0]["bytes"]


def test_accumulation_sends_once_a_step(digits, single, tmp_path):
    """And not with each of its four parts, as it would without no_sync()."""
    float32 = ("torch.bfloat16)", "torch.bfloat16, enabled=False)")
    done, sent = accumulated(digits, tmp_path, float32)
    assert difference(single[1], tmp_path) <= TOLERANCE
    assert sent == 30 * done.events("start")[0]["gradient_bytes"]


@pytest.mark.soak
def test_bf16_stays_close(digits, single, tmp_path):
    done, _ = accumulated(digits, tmp_path)
    # bfloat16 has 8 bits of mantissa: 0.4 % of a loss of 2.3 is 0.009.
    assert losses(done) == pytest.approx(losses(single[0]), abs=0.009)
    assert difference(single[1], tmp_path) > 1000 * TOLERANCE


@pytest.mark.soak  # half a minute of a core for the compiler
def test_a_compiled_model_is_the_same_but_for_rounding(digits, single, tmp_path):
    (line,) = re.findall(r"parallel_model = torch\.compile\(.*\)", REFERENCE)
    edit = ("parallel_model = DistributedDataParallel(model)", line)
    done = train(digits, tmp_path, "train_torch_ddp.py", edits=[edit])
    assert len(set(done.hashes.values())) == 1
    assert 0 < difference(single[1], tmp_path) <= TOLERANCE


@pytest.mark.parametrize(
    "name",
    [pytest.param("train_torch.py", marks=pytest.mark.soak), "train_torch_ddp.py"],  # lesson 10
)
def test_resumes_to_the_same_weights(single, ddp, digits, tmp_path, name):
    """A rank is killed in step 26. Started again with the same command, all go on from step 25."""
    whole, folder, command = (*single, alone()) if name == "train_torch.py" else (*ddp, by_hand(2))
    last_rank = "rank == world_size - 1"
    script = copied(name, tmp_path, dies(26, f'{last_rank} and not Path("second").exists()'))
    flags = [*STEPS, *channels(digits), "--checkpoint-dir", "kept", "--checkpoint-every", "5"]
    assert start(command, script, *flags, check=False).code != 0
    (tmp_path / "second").touch()
    done = start(command, script, *flags)
    assert [e["step"] for e in done.events("resumed")] == [25]
    assert done.hashes == whole.hashes and len(set(done.hashes.values())) == 1
    assert done.events("step")[-1] == whole.events("step")[-1]  # step 30
    assert difference(folder, tmp_path) == 0
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["checkpoint.pt"]


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


@RECENT
def test_the_model_of_blocks_trains_on_colour(tmp_path):
    """32 x 32 x 3, CIFAR-10's form: the loss falls, and inference.py serves it."""
    data = pictures(tmp_path / "data", (32, 32, 3), 16)
    flags = ["--blocks", "4", "--global-batch-size", "8", "--epochs", "3", "--log-every", "0"]
    script = copied("train_torch_fsdp.py", tmp_path / "blocks")
    done = start(by_hand(1), script, *flags, *channels(data), "--learning-rate", "0.01")
    losses_by_epoch = [e["train_loss"] for e in done.events("epoch")]
    assert losses_by_epoch[-1] < losses_by_epoch[0]
    copied("inference.py", tmp_path)
    serving = module("inference.py", tmp_path)
    model = serving.model_fn(tmp_path / "blocks" / "model")
    assert serving.predict_fn(np.zeros((2, 32, 32, 3), np.uint8), model).shape == (2, 10)


@pytest.mark.parametrize("shape", [(4, 4, 1), (32, 32, 3), (7, 9, 2)])
@pytest.mark.parametrize("blocks", [0, 2])
def test_images_of_any_size(shape, blocks):
    import torch

    model = module("inference.py", TRAIN).Classifier(shape, 16, blocks=blocks)
    logits = model(torch.zeros((2, *shape), dtype=torch.uint8))
    assert logits.shape == (2, 10)
    logits.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--training", "absent"], "no part-*.npz in absent"),
        (["--global-batch-size", "99999"], "no multiple of 1 up to 1437"),
    ],
)
def test_what_no_framework_tells_is_told(monkeypatch, digits, tmp_path, flags, message):
    script = module("train_torch.py", TRAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train_torch.py", *map(str, channels(digits)), *flags])
    with pytest.raises((SystemExit, AssertionError), match=re.escape(message)):
        script.main()


def test_a_flag_that_is_not_known_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train_torch.py", "--max-step", "3"])
    with pytest.raises(SystemExit):
        module("train_torch.py", TRAIN).parse_args()
    assert "unrecognized arguments: --max-step" in capsys.readouterr().err


JOINING = ["train_torch_ddp.py", pytest.param("train_torch_fsdp.py", marks=RECENT)]
JOINING += ["train_torch_local_sgd.py", "common/ranks_torch.py"]
PLACES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture
def join(monkeypatch):
    """A function: one rank's init_distributed with these variables and GPUs; what it called."""

    def join(name: str, gpus: int = 0, **variables: str) -> tuple[list, object]:
        script = module(name, DEMOS if "common" in name else TRAIN)
        calls = []
        monkeypatch.setattr(script.torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(
            script.torch.cuda, "set_device", lambda device: calls.append(("GPU", str(device)))
        )
        monkeypatch.setattr(
            script.dist, "init_process_group", lambda backend, **place: calls.append(backend)
        )
        for variable in PLACES:
            monkeypatch.setenv(variable, "")  # so that what it sets is gone after the test
            monkeypatch.delenv(variable)
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        device = script.init_distributed(*([""] if "ddp" in name else []))
        return calls, device

    return join


@pytest.mark.parametrize("name", JOINING)
def test_on_a_machine_with_several_gpus_each_rank_takes_its_own(join, name):
    """Before it meets the others: broadcast_object_list, barriers, FSDP use the current device."""
    variables = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    calls, device = join(name, gpus=2, **variables)
    assert calls == [("GPU", "1" if "common" in name else "cuda:1"), "nccl"]
    assert "common" in name or str(device) == "cuda:1"
    # A GPU that two ranks would have to share is left alone: NCCL refuses to share one.
    calls, device = join(name, gpus=1, **variables)
    assert calls == ["gloo"]
    assert "common" in name or str(device) == "cpu"  # and `start` says so


def mpirun_variables(rank: int, here: int) -> dict[str, str]:
    """The variables of a rank of two, `here` of them on its machine."""
    values = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank % here, "LOCAL_SIZE": here}
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize("name", JOINING)
def test_ranks_of_several_instances_meet_on_the_first(join, name):
    """Whatever each has inherited: an image sets MASTER_PORT, and mpirun doesn't hand it on."""
    inherited = [{"MASTER_ADDR": "algo-1", "MASTER_PORT": "7777"}, {}]
    for rank in (0, 1):
        hosts = {"SM_HOSTS": '["algo-1", "algo-2"]'}
        join(name, **inherited[rank], **mpirun_variables(rank, here=1), **hosts)
        assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("algo-1", "29500")
    # Where all ranks are on one machine its name need not be known to it.
    join(name, **mpirun_variables(1, here=2), **hosts)
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"


def test_what_torchrun_says_of_the_meeting_point_holds(join):
    variables = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    variables |= {"MASTER_ADDR": "algo-2", "MASTER_PORT": "7777", "SM_HOSTS": '["algo-1"]'}
    join("train_torch_ddp.py", **variables)
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("algo-2", "7777")


def test_a_checkpoint_that_cannot_be_read_is_left_as_it_is(digits, tmp_path):
    """Its training ends with an error: it doesn't begin anew, and write over it."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "checkpoint.pt").write_bytes(b"years of work")
    options = {"command": by_hand(1), "check": False}
    done = train(digits, tmp_path, "train_torch_ddp.py", "--checkpoint-dir", "kept", **options)
    assert done.code != 0
    assert (tmp_path / "kept" / "checkpoint.pt").read_bytes() == b"years of work"


NORM = (
    "layers = [nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU()",
    "layers = [nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16)",
)


@pytest.mark.soak
def test_a_model_with_batch_norm_and_dropout(digits, tmp_path):
    """Testing changes nothing in it, and the ranks' weights are the same: a reader puts it in."""
    import torch

    done = train(digits, tmp_path, "train_torch_ddp.py", edits=[NORM])
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1
    evaluate = module("train_torch_ddp.py", tmp_path).evaluate
    pixels = torch.rand(64, 8)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(8), torch.nn.Dropout(), torch.nn.Linear(8, 10))
    right = {evaluate(model, "cpu", pixels, torch.arange(64) % 10) for _ in range(20)}
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
    gradients = [e["gradient"] for e in done.events("step") if e["rank"] == 1]
    assert gradients == [6, 6, 6, 4, 4]  # (4 x 1 + 4 x 2) / 2, then (0 + 4 x 2) / 2
