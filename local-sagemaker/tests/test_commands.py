"""The command `local-sagemaker`: start and stop, and what stands in its way."""

import fcntl
import functools
import os
import shlex
import socket
import sys
import threading
from pathlib import Path

import pytest
from command_harness import ok, refused, run
from emulator_harness import begin_and_stop, captured
from moto import mock_aws
from moto_life import give_moto_its_storage_back

from local_sagemaker import daemon
from local_sagemaker.cli import main
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.pytest_plugin import BUCKET, Emulator, sdk_session
from local_sagemaker.server import serve

COMMAND = Path(sys.executable).parent / "local-sagemaker"
command = functools.partial(run, main)


def variables(state: Path, **extra: str) -> dict[str, str]:
    """Those of a shell."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**env, "LOCAL_SAGEMAKER_STATE_DIR": str(state), **extra}


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    """An emulator that `local-sagemaker start` has started."""
    state = tmp_path_factory.mktemp("commands") / "state"
    emulator = Emulator.__new__(Emulator)
    emulator.state, emulator.options = state, ["--grace", "3"]
    emulator.start_output = ok(command(state, "start", "--port", "0", "--grace", "3"))
    emulator.use(daemon.running(state))
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    emulator.put("data/part-0.txt", "x")
    yield emulator
    daemon.stop(state)


@pytest.fixture
def session(up, monkeypatch):
    return sdk_session(up, monkeypatch)


def test_up_and_status_say_where_it_is(up):
    assert f"answers on {up.running.url} (pid {up.running.pid})" in up.start_output
    assert 'eval "$(local-sagemaker env)"' in up.start_output
    for arguments in ([], ["--port", "0"], ["--port", str(up.running.port)]):
        output = ok(command(up.state, "start", *arguments))
        assert output == f"The emulator is up: {up.running.url} (pid {up.running.pid})\n"
    why = refused(command(up.state, "start", "--port", "4999"))
    assert f"up on port {up.running.port}" in why and "`local-sagemaker stop` first" in why
    output = ok(command(up.state, "status"))
    for part in (up.running.url, str(up.running.pid), str(up.state), up.running.isolation):
        assert part in output


def test_env_is_for_a_shells_eval(up):
    """Also in a shell that was set up for another account, another place, another way."""
    before = {"AWS_PROFILE": "work", "AWS_ENDPOINT_URL_S3": "https://elsewhere.invalid"}
    before |= {"AWS_SESSION_TOKEN": "token", "AWS_REGION": "eu-west-1"}
    before |= {"HTTP_PROXY": "http://proxy.invalid:3128", "no_proxy": "intern"}
    code = f'eval "$({shlex.quote(str(COMMAND))} env)"; env'
    done = captured(["/bin/sh", "-c", code], env=variables(up.state, **before), timeout=60)
    env = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert env["AWS_ENDPOINT_URL"] == up.running.url
    assert env["AWS_DEFAULT_REGION"] == "us-east-1"
    assert env["AWS_ACCESS_KEY_ID"] and env["AWS_SECRET_ACCESS_KEY"]
    assert Path(env["SAGEMAKER_USER_CONFIG_OVERRIDE"]).exists()
    assert env["SAGEMAKER_VALIDATE_ROLE"] == "false"  # of the SDK 3: no role has to exist
    gone = {"AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_REGION"}
    assert not gone & set(env)
    assert env["no_proxy"] == env["NO_PROXY"] == "intern,127.0.0.1"


def test_env_leaves_out_nothing_of_a_path(up, monkeypatch):
    variables = {"PLACE": "a\x1b[31mred"}
    monkeypatch.setattr(daemon, "environment_of_running", lambda: variables)
    assert ok(command(up.state, "env")) == "export PLACE='a\x1b[31mred'\n"


def test_with_the_emulator_down(tmp_path):
    assert "Start it with: local-sagemaker start" in refused(command(tmp_path, "env"))
    code = f'eval "$({shlex.quote(str(COMMAND))} env)" && echo "goes on"'
    evaluated = captured(["/bin/sh", "-c", code], env=variables(tmp_path), timeout=60)
    assert evaluated.returncode == 1 and evaluated.stdout == ""
    assert "Start it with: local-sagemaker start" in evaluated.stderr
    done = command(tmp_path, "status")
    assert done.exit_code == 3
    assert "`local-sagemaker start` starts it" in done.stdout
    assert ok(command(tmp_path, "stop")) == "The emulator was not up.\n"


def test_down_keeps_and_forget_forgets(tmp_path):
    emulator = Emulator(tmp_path / "state", ["--isolation", "processes"])
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    begin_and_stop(emulator, "a-job")
    emulator.wait("a-job")
    assert ok(command(emulator.state, "stop")) == "The emulator is down.\n"
    with socket.socket() as probe:  # the port is free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", emulator.running.port))
    emulator.up()
    assert [b["Name"] for b in emulator.client("s3").list_buckets()["Buckets"]] == [BUCKET]
    assert emulator.wait("a-job").status == "Stopped"
    output = ok(command(emulator.state, "stop", "--forget"))
    assert "The emulator is down." in output and "are removed" in output
    assert set(os.listdir(emulator.state)) <= {"lock"}


@pytest.fixture
def mocked():
    with mock_aws():
        yield
    give_moto_its_storage_back()


def serving(state: Path) -> None:
    """As much of a start as needs the state directory, in this process."""
    serve.serve(state, 0, "processes", 1.0)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("", "Not a directory"),
        ("state", "The state directory cannot be used"),
        ("state/moto", "The state directory cannot be used"),
        ("state/jobs", "The state directory cannot be used"),
        ("state/lock/folder", "The state directory cannot be used"),
    ],
)
def test_something_in_the_way_of_the_state(tmp_path, monkeypatch, mocked, where, why):
    monkeypatch.setattr(serve.tempfile, "tempdir", None)
    top = tmp_path / "top"
    (top / where).parent.mkdir(parents=True, exist_ok=True)
    (top / where).write_text("in the way")
    with pytest.raises(EmulatorError, match=why) as caught:
        serving(top / "state")
    assert "the variable LOCAL_SAGEMAKER_STATE_DIR" in str(caught.value)


def test_what_cannot_be_started_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    why = refused(command(tmp_path / "file" / "state", "start"))
    assert "Not a directory" in why and "LOCAL_SAGEMAKER_STATE_DIR" in why
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        why = refused(command(tmp_path / "state", "start", "--port", str(port)))
    assert why.startswith(f"Error: Port {port} of 127.0.0.1 cannot be used")
    assert "--port 4601" in why


def test_what_is_wrong_with_a_start(tmp_path):
    done = command(tmp_path / "state", "start", "--grace", "inf")
    assert done.exit_code == 2 and "inf is not in the range" in done.stderr
    assert not (tmp_path / "state").exists()


STALE = '{"pid": 1, "port": 1, "isolation": "", "why": "", "started": 0}'


def test_who_only_asks_does_not_keep_it_from_starting(tmp_path):
    """Asking takes the lock for an instant; what was left by a killed one is no answer."""
    (tmp_path / "emulator.json").write_text(STALE)
    with (tmp_path / "lock").open("w") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert daemon.running(tmp_path) is None  # another who asks is not in the way either
        threading.Timer(0.3, lambda: fcntl.flock(asking, fcntl.LOCK_UN)).start()
        with serve._only_one(tmp_path):
            assert not (tmp_path / "emulator.json").exists()
            (tmp_path / "emulator.json").write_text(STALE)
            assert daemon.running(tmp_path).pid == 1
            with pytest.raises(EmulatorError, match="Another emulator uses"):
                serving(tmp_path)
    assert daemon.running(tmp_path) is None
