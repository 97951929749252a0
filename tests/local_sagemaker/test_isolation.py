"""What instances are made of: namespaces for root and for others, processes elsewhere."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from links_helpers import started
from nobody_helpers import only_root, run_as_nobody

from endpoint_harness import BUCKET, SCRIPTS, Endpoint, estimator, sdk_session, start, until_gone
from local_sagemaker.cluster.namespaces import BRIDGE_ADDRESS

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
HOSTS = ["algo-1", "algo-2"]
NARROW = {"LOCAL_SAGEMAKER_LINKS": "1mbit"}


def seen(job) -> list[dict]:
    assert job.status == "Completed", job.description.get("FailureReason")
    return [json.loads(line) for line in job.lines("SEEN")]


@pytest.fixture(scope="module")
def without(tmp_path_factory, request):
    """An endpoint whose instances are plain processes."""
    options = ["--grace", "3", "--isolation", "processes"]
    one = Endpoint(tmp_path_factory.mktemp("plain"), options)
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    one.put("data/part-0.txt", "shard")
    return one


@pytest.fixture
def plain_sdk(without, monkeypatch):
    return sdk_session(without, monkeypatch)


@pytest.mark.namespaces
def test_nothing_of_a_job_is_left_and_the_learners_environment_is_as_it_was(endpoint, sdk):
    links = Path("/sys/class/net")
    before = sorted(os.listdir(links)), Path("/proc/self/mounts").read_text()
    job = endpoint.wait(start(estimator(sdk, "meddle.py", distribution=MPI)))
    assert job.lines("WROTE") == ["True"] * 4
    assert not Path(sys.prefix, "meddled.txt").exists()
    assert (sorted(os.listdir(links)), Path("/proc/self/mounts").read_text()) == before
    until_gone(job.name)
    folder, deadline = endpoint.state / "jobs" / job.name, time.monotonic() + 60
    while os.listdir(folder) != ["job.json"]:  # removed just after the job has ended
        assert time.monotonic() < deadline, os.listdir(folder)
        time.sleep(0.1)


@pytest.mark.namespaces
def test_an_instance_that_outlives_the_others_still_reaches_the_gateway(endpoint):
    """A bridge whose hardware address is one port's changes it when that instance ends."""
    script = [str(SCRIPTS / "outlive.py")]
    job = endpoint.wait(started(endpoint, "outlives", None, script, InstanceCount=3))
    assert job.status == "Completed", job.description.get("FailureReason")
    assert job.lines("FIRST") == ["reached"] * 3
    assert set(job.lines("ADDRESS")) == {BRIDGE_ADDRESS}
    assert job.lines("AGAIN") == ["reached"]


@pytest.mark.namespaces
@only_root
def test_an_ordinary_user_gets_namespaces_too(tmp_path):
    """The same probe as another user."""
    code = "from local_sagemaker.cluster import probe; print(os.getuid(), *probe.isolation())"
    done = run_as_nobody(code, tmp_path)
    assert done.stdout.split()[:2] == ["65534", "namespaces"], done.stdout + done.stderr


def test_without_namespaces_variables_are_the_same_and_tf_configs_ports_exist(without, plain_sdk):
    """A link that cannot be narrowed here stays wide, and the log says so."""
    options = {"distribution": {"parameter_server": {"enabled": True}}, "environment": NARROW}
    job = without.wait(start(estimator(plain_sdk, "show.py", **options)))
    found = sorted(seen(job), key=lambda one: one["SM_CURRENT_HOST"])
    assert [one["SM_CURRENT_HOST"] for one in found] == HOSTS
    assert [json.loads(one["SM_HOSTS"]) for one in found] == [HOSTS, HOSTS]
    for one in found:
        assert one["SM_MODEL_DIR"].endswith("/ml/model")
        assert one["channel"] == ["part-0.txt"]
    first, second = (json.loads(one["TF_CONFIG"])["cluster"] for one in found)
    assert first == second
    addresses = first["master"] + first["worker"] + first["ps"]
    assert len(set(addresses)) == 4
    assert all(address.startswith("localhost:") for address in addresses)
    notes = job.lines("[local]")
    assert any("instances are plain processes here" in line for line in notes)
    wide = "links are wide: instances are plain processes here and share the loopback"
    assert [line for line in notes if line.startswith("links")] == [wide]
    until_gone(job.name)


def test_without_namespaces_mpi_has_its_ranks(without, plain_sdk):
    job = without.wait(start(estimator(plain_sdk, "show.py", distribution=MPI)))
    found = seen(job)
    assert sorted(one["rank"] for one in found) == [0, 1, 2, 3]
    assert {one["size"] for one in found} == {4}


def test_without_namespaces_torchrun_finds_its_master(without, plain_sdk):
    one = estimator(
        plain_sdk,
        "ddp.py",
        kind="pytorch",
        distribution={"torch_distributed": {"enabled": True}},
        image_uri="registry.invalid/pytorch-training:2.2.0-cpu-py310",
        hyperparameters={"backend": "gloo"},
    )
    job = without.wait(start(one))
    assert {tuple(one["total"]) for one in seen(job)} == {(3.0, 3.0)}


def test_without_namespaces_a_stubborn_job_ends(without, plain_sdk):
    """It is one instance, which has no link: of links nothing is said."""
    options = {"hyperparameters": {"mode": "raise"}, "instance_count": 1, "environment": NARROW}
    job = without.wait(start(estimator(plain_sdk, "fail.py", **options)))
    assert job.status == "Failed"
    assert not any(line.startswith("links") for line in job.lines("[local]"))
    until_gone(job.name)
