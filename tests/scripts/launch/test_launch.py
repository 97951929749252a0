"""The files of scripts/launch: what can be checked of them without their clusters."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import psutil
import pytest
import yaml
from emulator_harness import executable, until
from script_harness import TRAIN, channels, copied, free_port, module, start

LAUNCH = TRAIN.parent / "launch"
# What stands in the place of ssh: it is called with a host and a command.
SSH = '#!/bin/bash\n[[ $1 == 127.0.0.? ]] || exit 255\nexec bash -c "$2"\n'
TORCHRUN = '#!/bin/bash\necho "torchrun $*"\nexec sleep "$SECONDS_TO_RUN"\n'


@pytest.fixture
def ssh(tmp_path, digits):
    """Run ssh.sh for some hosts, all of which are this machine."""

    def ssh(hosts: str, **env: str):
        copied("train_torch_ddp.py", tmp_path)
        script = tmp_path / "ssh.sh"
        script.write_text((LAUNCH / "ssh.sh").read_text())
        executable(tmp_path / "remote", SSH)
        executable(tmp_path / "bin" / "torchrun", TORCHRUN)
        env |= {"HOSTS": hosts, "REMOTE": str(tmp_path / "remote"), "PORT": free_port()}
        flags = ["--max-steps", "3", *channels(digits)]
        return start(["bash"], script, *flags, check=False, **env)

    return ssh


def stub(tmp_path, seconds: int) -> dict[str, str]:
    """Variables with which torchrun only says how it was called, and runs so long."""
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "SECONDS_TO_RUN": str(seconds)}


@pytest.mark.soak
def test_ssh_starts_a_rank_on_each_host(ssh):
    done = ssh("127.0.0.1 127.0.0.1")
    assert done.code == 0, done.stderr
    assert done.events("start")[0]["world_size"] == 2
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1


def test_ssh_starts_torchrun_on_each_host(ssh, tmp_path):
    done = ssh("127.0.0.1 127.0.0.2", RANKS_PER_HOST="4", **stub(tmp_path, 0))
    assert done.code == 0, done.stderr
    for number, line in enumerate(sorted(done.stdout.splitlines())):
        words = line.split()
        first = ["--nnodes", "2", "--node_rank", str(number), "--nproc_per_node", "4"]
        assert words[1:9] == [*first, "--master_addr", "127.0.0.1"]
        assert words[11:16] == ["train_torch_ddp.py", "--threads-per-rank", "1", "--max-steps", "3"]


def test_ssh_fails_with_a_host_that_cannot_be_reached(ssh, tmp_path):
    """And does not wait for it: the rest is ended."""
    assert ssh("127.0.0.1 elsewhere", **stub(tmp_path, 600)).code == 255
    until(lambda: not [each for each in psutil.process_iter() if in_folder(each, str(tmp_path))])


def in_folder(process: psutil.Process, folder: str) -> bool:
    """Whether it works in that folder, and does more than wait to be reaped."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.cwd() == folder
    except psutil.Error:
        return False


@pytest.mark.parametrize("name", ["ssh.sh", "slurm.sbatch"])
def test_bash_reads_it(name):
    done = subprocess.run(["bash", "-n", LAUNCH / name], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def taken(monkeypatch, flags: list[str]):
    """What train_torch_ddp.py makes of the flags; SystemExit where it knows one not."""
    script = module("train_torch_ddp.py", TRAIN)
    monkeypatch.setattr(script.sys, "argv", ["train_torch_ddp.py", *flags])
    return script.parse_args()


def test_slurm_gives_flags_that_the_script_takes(monkeypatch):
    text = (LAUNCH / "slurm.sbatch").read_text()
    command = text[text.index("srun torchrun") :].replace("\\\n", " ").replace('"$@"', "")
    words = shlex.split(command)
    script = next(n for n, word in enumerate(words) if word.endswith("train_torch_ddp.py"))
    assert {"--nnodes", "--nproc_per_node", "--rdzv_endpoint"} <= set(words[:script])
    assert taken(monkeypatch, words[script + 1 :]).checkpoint_dir == "$SHARED/checkpoints"
    assert re.search(r"^#SBATCH --ntasks-per-node=1\b", text, re.MULTILINE)  # one torchrun a node


def test_the_pytorchjob_has_its_fields(monkeypatch):
    """The fields that the operator's schema requires, and what its controller looks for."""
    job = yaml.safe_load((LAUNCH / "kubernetes_pytorchjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert isinstance(job["spec"]["nprocPerNode"], str)
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert set(replicas) == {"Master", "Worker"} and replicas["Master"]["replicas"] == 1
    for replica in replicas.values():
        pod = replica["template"]["spec"]
        (container,) = pod["containers"]
        assert container["name"] == "pytorch"
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
        torchrun, script, *flags = container["command"]
        assert (torchrun, Path(script).name) == ("torchrun", "train_torch_ddp.py")
        assert taken(monkeypatch, flags).save_to.startswith("/shared/")
