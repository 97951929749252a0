"""The notebook instance: the limits of its scripts, and the scripts at work."""

import base64
import runpy
import subprocess
import sys

import botocore.session
import pytest
from notebook_instance_harness import Machine, end_processes_of, kit_archive, lifecycle, until

import workshop
from workshop.account import notebook_instance, stacks
from workshop.paths import CLOUDFORMATION


@pytest.fixture
def session(own_endpoint, clean_aws, monkeypatch):
    """A seat with a notebook instance."""
    monkeypatch.setattr(notebook_instance, "_packed", kit_archive)
    found = workshop.session("local", seat="nb")
    stacks.deploy(found, ("storage", "roles", "notebook"), say=lambda _: None)
    return found


@pytest.fixture
def machine(tmp_path):
    yield Machine(tmp_path)
    end_processes_of(tmp_path)


def test_the_script_is_within_sagemakers_limit(session):
    model = botocore.session.get_session().get_service_model("sagemaker")
    limit = model.shape_for("NotebookInstanceLifecycleConfigContent").metadata["max"]
    assert limit == 16384
    assert {name: len(text) <= limit for name, text in lifecycle(session).items()} == {
        "OnStart": True
    }


def test_the_template_holds_the_scripts_as_they_are():
    text = notebook_instance.TEMPLATE.read_text()
    assert notebook_instance.embedded(text) == text, "run its module"
    names = {one["name"] for one in notebook_instance.BLOCK.finditer(text)}
    assert names == {path.name for path in notebook_instance.SCRIPTS.iterdir()}


def test_a_changed_script_is_found(tmp_path):
    for path in notebook_instance.SCRIPTS.iterdir():
        (tmp_path / path.name).write_text(path.read_text() + "\n# more\n")
    text = notebook_instance.TEMPLATE.read_text()
    changed = notebook_instance.embedded(text, tmp_path)
    assert changed.count("# more") == 3
    assert notebook_instance.embedded(changed) == text


@pytest.mark.parametrize("path", sorted((CLOUDFORMATION / "notebook").glob("*.sh")), ids=str)
def test_bash_can_read_a_script(path):
    subprocess.run(["bash", "-n", path], check=True)


def test_bash_can_read_what_sagemaker_gets(session, tmp_path):
    for name, content in lifecycle(session).items():
        script = tmp_path / name
        script.write_bytes(base64.b64decode(content))
        subprocess.run(["bash", "-n", script], check=True)
        assert script.read_text().startswith("#!/bin/bash\n")


def watched(machine):
    """The instance's own Python, which has boto3, is this environment's."""
    machine.program(
        "home/ec2-user/anaconda3/envs/JupyterSystemEnv/bin/python",
        f'exec "{sys.executable}" "$@"',
    )
    return machine


def start(session, machine, wanted="choose the kernel Workshop"):
    """Run the lifecycle script, and wait until the set-up behind it says so, or has an error."""
    done = watched(machine).run(lifecycle(session)["OnStart"])
    assert done.returncode == 0, done.stderr
    log = machine.folder / "set_up.log"
    until(lambda: wanted in log.read_text() or "rror" in log.read_text())
    assert wanted in log.read_text()
    return log.read_text()


def set_up(machine):
    """Run the set-up again, as somebody at a terminal would."""
    program = machine.root / "opt/workshop/set_up.sh"
    command = [program, "s3://not-asked-again/kit.tar.gz", machine.folder]
    return subprocess.run(command, env=machine.env, capture_output=True, text=True)


def test_the_first_start_fetches_the_kit_and_makes_its_environment(session, machine):
    takes_long = machine.root / "conda-takes-long"
    takes_long.touch()
    done = watched(machine).run(lifecycle(session)["OnStart"])  # SageMaker would not wait for conda
    assert done.returncode == 0, done.stderr
    until(lambda: "conda env create" in machine.said())
    takes_long.unlink()
    log = machine.folder / "set_up.log"
    until(lambda: "choose the kernel Workshop" in log.read_text() or "rror" in log.read_text())
    assert "choose the kernel Workshop" in log.read_text()
    assert (machine.folder / "workshop-kit/environment.yml").read_text() == "name: test\n"
    environment, calls = machine.folder / "workshop-env", machine.said()
    assert f"conda env create --quiet --prefix {environment}" in calls
    assert "pip install --quiet --no-deps --editable" in calls
    assert "python -m ipykernel install --user --name workshop" in calls
    assert calls.index("channel conda-forge gxx make") < calls.index("-m bootstrap --horovod-here")
    assert (environment / ".horovod").exists()


def test_where_horovod_cannot_be_built_the_log_says_so_and_the_rest_works(session, machine):
    (machine.root / "no-compiler").touch()
    said = start(session, machine)
    assert "Horovod could not be built here" in said
    assert not (machine.folder / "workshop-env/.horovod").exists()
    assert "bootstrap" not in machine.said()
    (machine.root / "no-compiler").unlink()
    assert set_up(machine).returncode == 0
    assert (machine.folder / "workshop-env/.horovod").exists(), "it is tried again"


def test_a_set_up_that_failed_goes_on_where_it_was(session, machine):
    (machine.root / "conda-fails").touch()
    watched(machine).run(lifecycle(session)["OnStart"])
    environment = machine.folder / "workshop-env"
    until(lambda: "conda" in machine.said())
    until(lambda: set_up(machine).returncode == 1)  # 0 while the first one still runs
    assert not (environment / ".whole").exists()
    (machine.root / "conda-fails").unlink()
    assert set_up(machine).returncode == 0
    assert (environment / ".whole").exists()
    made = machine.said().count("conda env create")
    assert set_up(machine).returncode == 0
    assert machine.said().count("conda env create") == made


def test_the_next_start_resumes_a_set_up_that_a_stop_cut_off(session, machine):
    takes_long = machine.root / "conda-takes-long"
    takes_long.touch()
    watched(machine).run(lifecycle(session)["OnStart"])
    until(lambda: "conda env create" in machine.said())
    end_processes_of(machine.root)
    # A `sleep` of the one that was ended holds its lock for a moment more.
    subprocess.run(["flock", machine.folder / ".set_up.lock", "true"], check=True, timeout=60)
    takes_long.unlink()
    assert not (machine.folder / "workshop-env/.whole").exists()
    start(session, machine)
    assert (machine.folder / "workshop-env/.whole").exists()
    assert machine.said().count("aws s3 cp") == 1, "the kit was there already"


def test_the_set_up_is_use_and_runs_once(session, machine):
    takes_long = machine.root / "conda-takes-long"
    takes_long.touch()
    watched(machine).run(lifecycle(session)["OnStart"])
    until(lambda: "conda env create" in machine.said())
    idle_stop = runpy.run_path(str(CLOUDFORMATION / "notebook/idle_stop.py"))
    lock = machine.folder / ".set_up.lock"
    assert idle_stop["works"](lock)
    assert set_up(machine).returncode == 0
    assert machine.said().count("conda env create") == 1
    takes_long.unlink()
    until(lambda: not idle_stop["works"](lock))
    assert not idle_stop["works"](machine.folder / "nobody-made-it")


def test_a_kit_that_is_a_repository_is_cloned(machine, tmp_path):
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "environment.yml").write_text("name: cloned\n")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", origin, *command], check=True)
    set_up = ["bash", CLOUDFORMATION / "notebook/set_up.sh", f"file://{origin}", machine.folder]
    subprocess.run(set_up, env=machine.env, check=True, capture_output=True)
    assert (machine.folder / "workshop-kit/environment.yml").read_text() == "name: cloned\n"


def test_every_start_names_the_kernel_again_and_watches_for_idleness(session, machine):
    start(session, machine)
    (machine.folder / "set_up.log").unlink()
    before = machine.said()
    start(session, machine)
    again = machine.said().removeprefix(before)
    assert "ipykernel install --user --name workshop" in again
    assert "conda" not in again and "bootstrap" not in again
    log = machine.root / "var/log/workshop-idle-stop.log"
    until(lambda: "of 60 minutes without use" in log.read_text())


def test_a_start_without_boto3_fails_and_says_so(session, machine):
    machine.env["PATH"] = f"{machine.bin}:/usr/bin:/bin"
    machine.program("python3", "exit 1")
    content = base64.b64decode(lifecycle(session)["OnStart"]).replace(b"/usr/bin/python3", b"no")
    done = machine.run(base64.b64encode(content).decode())
    assert done.returncode == 1
    assert "would never stop by itself" in done.stderr
