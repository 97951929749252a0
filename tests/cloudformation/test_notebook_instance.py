"""The notebook instance: the kit in the bucket, and the instance's scripts at work.

The scripts run as deployed, on a folder that is the instance's file system. The programs that they
call are little stand-ins, which refuse what the instance's own would not be asked.
"""

import base64
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import botocore.session
import psutil
import pytest
import stacks_harness
from emulator_harness import captured, executable, until

from tools import notebook_template
from workshop.account import stacks
from workshop.paths import CLOUDFORMATION

PROGRAMS = Path(__file__).parent / "instance_programs"


@pytest.fixture(scope="module")
def deployed():
    """(the OnStart script as SageMaker has it, in base64, and the seat's bucket)."""
    with pytest.MonkeyPatch.context() as patch, stacks_harness.aws(patch):
        session = stacks_harness.session("nb")
        with pytest.MonkeyPatch.context() as during:
            during.setattr(stacks, "_packed", lambda: b"kit")
            stacks.deploy(session, ("storage", "roles", "notebook"), log=lambda _: None)
        client = session.client("sagemaker")
        which = {"StackName": "workshop-nb-notebook", "LogicalResourceId": "Lifecycle"}
        made = session.client("cloudformation").describe_stack_resource(**which)
        arn = made["StackResourceDetail"]["PhysicalResourceId"]
        config = client.describe_notebook_instance_lifecycle_config(
            NotebookInstanceLifecycleConfigName=arn.rsplit("/", 1)[-1]
        )
        assert not config.get("OnCreate")
        yield config["OnStart"][0]["Content"], stacks.outputs(session)["BucketName"]


class Machine:
    """A notebook instance: its file system under a folder, and its programs."""

    def __init__(self, root: Path, content: str, bucket: str) -> None:
        self.root, self.folder = root, root / "home/ec2-user/SageMaker"
        self.bin, self.calls, self.content = root / "bin", root / "calls", content
        for folder in (self.folder, self.bin, root / "var/log"):
            folder.mkdir(parents=True)
        (root / "environment.yml").write_text("name: test\n")
        for path in PROGRAMS.iterdir():
            shutil.copy(path, self.bin)
        self.program("home/ec2-user/anaconda3/envs/JupyterSystemEnv/bin/python", "")  # has boto3
        self.env = {
            **os.environ,
            "ROOT": str(root),
            "CALLS": str(self.calls),
            "FOLDER": str(self.folder),
            "BUCKET": bucket,
            "CONDA": str(self.bin / "conda"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def program(self, name: str, body: str) -> None:
        text = f'#!/bin/bash\necho "${{0##*/}} $*" >>"$CALLS"\n{body}\n'
        executable(self.root / name, text)

    def start(self) -> subprocess.CompletedProcess:
        """Run the lifecycle script as SageMaker would: it does not wait for the set-up."""
        script = self.root / "script.sh"
        script.write_bytes(base64.b64decode(self.content))
        return captured(["bash", script], env=self.env, timeout=30)

    def started(self) -> str:
        """Start, and wait for the end of the set-up. Returns its log."""
        log = self.folder / "set_up.log"
        assert self.start().returncode == 0
        until(lambda: "choose the kernel" in log.read_text() or "rror" in log.read_text())
        assert "choose the kernel Workshop" in log.read_text()
        return log.read_text()

    def begun(self) -> None:
        """Start, and wait until conda is at work, which lasts while conda-takes-long is there."""
        (self.root / "conda-takes-long").touch()
        assert self.start().returncode == 0
        until(lambda: "conda env create" in self.output())

    def set_up(self, kit="s3://not-asked-again/kit.tar.gz") -> int:
        """Run the set-up again, as somebody at a terminal would. Returns its exit status."""
        command = ["bash", CLOUDFORMATION / "notebook/set_up.sh", kit, self.folder]
        return subprocess.run(command, env=self.env, capture_output=True).returncode

    def output(self) -> str:
        return self.calls.read_text() if self.calls.exists() else ""

    def end(self) -> None:
        """End its processes: those whose command line names its folder."""
        for process in psutil.process_iter():
            try:
                if str(self.root) in " ".join(process.cmdline()) and process.pid != os.getpid():
                    process.kill()
            except psutil.Error:
                continue


@pytest.fixture
def machine(deployed, tmp_path):
    result = Machine(tmp_path, *deployed)
    yield result
    result.end()


def test_the_template_holds_the_scripts_as_they_are_within_sagemakers_limit(deployed):
    text = notebook_template.TEMPLATE.read_text()
    assert notebook_template.embedded(text) == text, "run tools.sync"
    names = {row["name"] for row in notebook_template.BLOCK.finditer(text)}
    assert names == {path.name for path in notebook_template.SCRIPTS.iterdir() if path.is_file()}
    model = botocore.session.get_session().get_service_model("sagemaker")
    limit = model.shape_for("NotebookInstanceLifecycleConfigContent").metadata["max"]
    assert len(deployed[0]) <= limit == 16384


def test_every_start_sets_up_what_is_missing_and_watches_for_idleness(machine):
    machine.started()
    assert (machine.folder / "workshop-kit/environment.yml").read_text() == "name: test\n"
    environment, calls = machine.folder / "workshop-env", machine.output()
    assert f"conda env create --quiet --prefix {environment}" in calls
    assert "pip install --quiet --no-deps --editable" in calls
    assert "python -m ipykernel install --user --name workshop" in calls
    assert calls.index("channel conda-forge gxx make") < calls.index(
        "-m tools.setup --horovod-here"
    )
    assert (environment / ".horovod").exists()
    (machine.folder / "set_up.log").unlink()
    machine.started()
    again = machine.output().removeprefix(calls)
    assert "ipykernel install --user --name workshop" in again, "that list is on no lasting disk"
    assert "conda" not in again and "tools.setup" not in again
    program, lock = machine.root / "opt/workshop/idle_stop.py", machine.folder / ".set_up.lock"
    until(lambda: f"python {program} --minutes 60 --working {lock}" in machine.output())


def test_where_horovod_cannot_be_built_the_log_says_so_and_the_rest_works(machine):
    (machine.root / "no-compiler").touch()
    assert "Horovod could not be built here" in machine.started()
    assert not (machine.folder / "workshop-env/.horovod").exists()
    assert "tools.setup" not in machine.output()
    (machine.root / "no-compiler").unlink()
    assert machine.set_up() == 0
    assert (machine.folder / "workshop-env/.horovod").exists(), "it is tried again"


def test_a_set_up_that_failed_resumes(machine):
    (machine.root / "conda-fails").touch()
    assert machine.start().returncode == 0
    whole = machine.folder / "workshop-env/.whole"
    until(lambda: "conda" in machine.output())
    until(lambda: machine.set_up() == 1)  # 0 while the first one still runs
    assert not whole.exists()
    (machine.root / "conda-fails").unlink()
    assert machine.set_up() == 0 and whole.exists()


def test_the_next_start_resumes_a_set_up_that_a_stop_cut_off(machine):
    machine.begun()
    machine.end()
    # A `sleep` of the one that was ended holds its lock for a moment more.
    subprocess.run(["flock", machine.folder / ".set_up.lock", "true"], check=True, timeout=60)
    (machine.root / "conda-takes-long").unlink()
    assert not (machine.folder / "workshop-env/.whole").exists()
    machine.started()
    assert (machine.folder / "workshop-env/.whole").exists()
    assert machine.output().count("aws s3 cp") == 1, "the kit was there already"


def test_the_set_up_runs_once(machine):
    machine.begun()
    assert machine.set_up() == 0
    assert machine.output().count("conda env create") == 1


def test_a_kit_that_is_a_repository_is_cloned(machine, tmp_path):
    origin = committed(tmp_path / "origin", "environment.yml", "name: cloned\n")
    assert machine.set_up(f"file://{origin}") == 0
    assert (machine.folder / "workshop-kit/environment.yml").read_text() == "name: cloned\n"


def test_a_start_without_boto3_fails_and_says_so(machine):
    machine.program("home/ec2-user/anaconda3/envs/JupyterSystemEnv/bin/python", "exit 1")
    machine.program("bin/python3", "exit 1")
    script = base64.b64decode(machine.content).replace(b"/usr/bin/python3", b"no")
    machine.content = base64.b64encode(script)
    done = machine.start()
    assert done.returncode == 1 and "would never stop by itself" in done.stderr


# The kit


def committed(root: Path, name: str, text: str) -> Path:
    """A git checkout that holds one program."""
    root.mkdir(exist_ok=True)
    (root / name).write_text(text)
    (root / name).chmod(0o755)
    person = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for command in (["init", "-q"], ["add", name], [*person, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", root, *command], check=True)
    return root


@pytest.fixture
def session(deployed):
    return stacks_harness.session("nb")


def test_the_kit_is_what_was_committed(session, tmp_path, monkeypatch):
    root = committed(tmp_path / "kit", "program", "#!/bin/sh\n")
    (root / "not-committed").write_text("private")
    monkeypatch.setattr(stacks, "ROOT", root)
    s3, bucket = session.client("s3"), stacks.outputs(session, ("storage",))["BucketName"]
    stacks.upload_kit(session)
    body = s3.get_object(Bucket=bucket, Key="kit/kit.tar.gz")["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.getnames() == ["program"]
        assert archive.getmember("program").mode & 0o100


@pytest.mark.parametrize("missing", ["git", "checkout"])
def test_without_git_it_says_where_else_the_kit_may_be(session, monkeypatch, tmp_path, missing):
    monkeypatch.setattr(stacks, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if missing == "git":
        monkeypatch.setattr(stacks.shutil, "which", lambda _: None)
    with pytest.raises(stacks.StackError, match="--parameter Kit=https"):
        stacks.upload_kit(session)
