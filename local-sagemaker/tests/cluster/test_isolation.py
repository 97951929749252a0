"""What instances are made of: namespaces for root and for others, processes elsewhere."""

import json
import sys
from pathlib import Path

import pytest
from bandwidth_helpers import started
from emulator_harness import SCRIPTS, command_request, ended, estimator, records, start, until_gone
from nobody_helpers import only_root, run_as_nobody

from local_sagemaker.cluster.namespace_instances import BRIDGE_ADDRESS
from local_sagemaker.pytest_plugin import BUCKET, Emulator, sdk_session
from local_sagemaker.training.shared_folder import VARIABLE

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
HOSTS = ["algo-1", "algo-2"]
NARROW = {"LOCAL_SAGEMAKER_BANDWIDTH": "1mbit"}


@pytest.mark.namespaces
def test_a_job_that_writes_into_its_python_leaves_the_learners_as_it_was(emulator):
    """That nothing else of a job is left: test_many_jobs.py."""
    path = Path(sys.prefix, "meddled.txt")
    write = f"import pathlib; path = pathlib.Path({str(path)!r}); path.touch(); print('WROTE')"
    job = emulator.wait(started(emulator, "meddles", None, ["-c", write]))
    assert job.lines("WROTE") == [""] * 2
    assert not path.exists()


WRITE = "import os, sys; open(sys.argv[1] + '/' + os.uname().nodename, 'w').write('here')"


@pytest.mark.namespaces
def test_all_instances_write_to_a_shared_folder_and_to_nothing_beside_it(emulator, tmp_path):
    """pytest's folders are in /tmp, of which an instance has its own."""
    shared, beside = tmp_path / "shared", tmp_path / "beside"
    for folder, status in ((shared, "Completed"), (beside, "Failed")):
        folder.mkdir()
        command = [sys.executable, "-c", WRITE, str(folder)]
        body = command_request(f"writes-{folder.name}", command, 2)
        body["Environment"] = {VARIABLE: str(shared)}
        assert ended(emulator, body).status == status
    assert {path.name for path in shared.iterdir()} == set(HOSTS)
    assert not list(beside.iterdir())


@pytest.mark.namespaces
def test_an_instance_that_outlives_the_others_still_reaches_the_gateway(emulator):
    """A bridge whose hardware address is one port's changes it when that instance ends."""
    script = [str(SCRIPTS / "outlive.py")]
    job = emulator.wait(started(emulator, "outlives", None, script, InstanceCount=3))
    assert job.status == "Completed", job.failure_reason
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


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Jobs of an emulator whose instances are plain processes: each test waits for its own.

    A link that cannot be narrowed here stays wide, and the log says so.
    """
    options = ["--grace", "3", "--isolation", "processes"]
    emulator = Emulator(tmp_path_factory.mktemp("plain"), options)
    try:
        emulator.client("s3").create_bucket(Bucket=BUCKET)
        emulator.put("data/part-0.txt", "shard")
        with pytest.MonkeyPatch.context() as patch:
            session = sdk_session(emulator, patch)

            def begun(script: str, **options) -> str:
                return start(estimator(session, script, **options))

            servers = {"parameter_server": {"enabled": True}}
            alone = {"hyperparameters": {"mode": "raise"}, "instance_count": 1}
            torchrun = {"torch_distributed": {"enabled": True}}
            image = "registry.invalid/pytorch-training:2.2.0-cpu-py310"
            names = {
                "servers": begun("show.py", distribution=servers, environment=NARROW),
                "mpi": begun("show.py", distribution=MPI),
                "torchrun": begun(
                    "show.py", kind="pytorch", distribution=torchrun, image_uri=image
                ),
                "fails": begun("fail.py", environment=NARROW, **alone),
            }
        yield lambda key: emulator.wait(names[key])
    finally:
        emulator.down()


def test_without_namespaces_variables_are_the_same_and_tf_configs_ports_exist(plain):
    job = plain("servers")
    result = sorted(records(job, "SEEN"), key=lambda item: item["SM_CURRENT_HOST"])
    assert [item["SM_CURRENT_HOST"] for item in result] == HOSTS
    assert [json.loads(item["SM_HOSTS"]) for item in result] == [HOSTS, HOSTS]
    for item in result:
        assert item["SM_MODEL_DIR"].endswith("/ml/model")
        assert item["channel"] == ["part-0.txt"]
    first, second = (json.loads(item["TF_CONFIG"])["cluster"] for item in result)
    assert first == second
    addresses = first["master"] + first["worker"] + first["ps"]
    assert len(set(addresses)) == 4
    assert all(address.startswith("localhost:") for address in addresses)
    notes = job.lines("[local]")
    assert any("instances are plain processes here" in line for line in notes)
    until_gone(job.name)


@pytest.mark.parametrize("launcher", ["mpi", "torchrun"])
def test_without_namespaces_all_ranks_find_each_other(plain, launcher):
    result, ranks = records(plain(launcher), "SEEN"), 4 if launcher == "mpi" else 2
    assert sorted(int(item["rank"]) for item in result) == list(range(ranks))
    assert {int(item["size"]) for item in result} == {ranks}


def test_without_namespaces_a_stubborn_job_ends(plain):
    """It is one instance, which has no link: of links nothing is said."""
    job = plain("fails")
    assert job.status == "Failed"
    assert not any(line.startswith("links") for line in job.lines("[local]"))
    until_gone(job.name)
