"""A folder of this machine, which a job's instances see and write where it is here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from emulator_harness import command_request

from local_sagemaker.training.shared_folder import VARIABLE

WRITE = "import os, sys; open(sys.argv[1] + '/' + os.uname().nodename, 'w').write('here')"


def job(name: str, shared: Path, written: Path) -> dict:
    command = [sys.executable, "-c", WRITE, str(written)]
    return command_request(name, command, 2, Environment={VARIABLE: str(shared)})


@pytest.mark.namespaces
def test_all_instances_write_to_it_and_to_nothing_beside_it(emulator, tmp_path):
    """pytest's folders are in /tmp, of which an instance has its own."""
    shared, beside = tmp_path / "shared", tmp_path / "beside"
    shared.mkdir()
    beside.mkdir()
    client = emulator.client("sagemaker")
    client.create_training_job(**job("shares-a-folder", shared, shared))
    assert emulator.wait("shares-a-folder").status == "Completed"
    assert {path.name: path.read_text() for path in shared.iterdir()} == {
        "algo-1": "here",
        "algo-2": "here",
    }
    client.create_training_job(**job("writes-beside-it", shared, beside))
    assert emulator.wait("writes-beside-it").status == "Failed"
    assert not list(beside.iterdir())


@pytest.mark.parametrize("folder", ["relative", "/no/such/folder", __file__])
def test_another_folder_is_refused(emulator, folder):
    with pytest.raises(ClientError, match="must be the absolute path of a folder"):
        emulator.client("sagemaker").create_training_job(
            **job("shares-nothing", Path(folder), Path(folder))
        )
