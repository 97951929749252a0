"""The image recipe cannot be built without an AWS account. What can be checked of it is."""

import os
import re
import sys
from pathlib import Path

import pytest
from emulator_harness import captured

from tools.setup.horovod import FLAGS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cloudformation" / "image"
RECIPE = FOLDER / "Dockerfile"


def build(*arguments, **environment):
    """build_and_push.sh, on a machine whose environment names no region."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    command = [FOLDER / "build_and_push.sh", *arguments]
    return captured(command, env=clean | environment, timeout=120)


def test_the_linter_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = captured([hadolint, RECIPE])
    assert done.returncode == 0, done.stdout


def test_horovod_is_built_as_for_the_kit_itself():
    text = RECIPE.read_text()
    for name, value in FLAGS.items():
        assert f"{name}={value}" in text, name
    assert {"horovod.txt", "horovod-build.txt"} <= set(re.findall(r"[\w-]+\.txt", text))
    stubs = text.index("ldconfig /usr/local/cuda/targets/x86_64-linux/lib/stubs")
    assert stubs < text.index("pip install") < text.index(" && ldconfig")


def test_a_dry_run_prints_every_command_and_runs_none(tmp_path):
    done = build("--dry-run", "--region", "eu-west-1", "--seat", "ann", "--gpu")
    assert done.returncode == 0, done.stderr
    commands = [line for line in done.stdout.splitlines() if line.startswith("$ ")]
    words = [" ".join(line.split()[1:3]) for line in commands]
    assert words == ["aws ecr", "docker build", "aws ecr", "aws ecr", "docker push"]
    assert "tensorflow-training:2.18.0-gpu-py310" in commands[1]
    assert "HOROVOD_GPU_OPERATIONS=NCCL" in commands[1]
    assert "Key=workshop,Value=data-parallel Key=seat,Value=ann" in commands[2]
    assert "workshop-ann-horovod" in commands[4] and ".eu-west-1." in commands[4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dry-run"], "no region is set"),
        (["--dry-run", "--region", "mars-1"], "no TensorFlow image in the region mars-1"),
        (["--dry-run", "--region", "eu-west-1", "--seat", "Ann"], "small letters"),
        (["--gpus"], "unknown option --gpus"),
        (["--seat"], "--seat needs a value"),
    ],
)
def test_wrong_use_is_refused(arguments, message):
    done = build(*arguments)
    assert done.returncode == 2 and message in done.stderr
    assert "docker" not in done.stdout
