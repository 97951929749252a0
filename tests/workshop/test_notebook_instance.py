"""The notebook instance: the limits of its scripts, and the scripts at work."""

import base64
import subprocess
from pathlib import Path

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


def test_the_scripts_are_within_sagemakers_limit(session):
    model = botocore.session.get_session().get_service_model("sagemaker")
    limit = model.shape_for("NotebookInstanceLifecycleConfigContent").metadata["max"]
    assert limit == 16384
    assert {name for name, text in lifecycle(session).items() if len(text) <= limit} == {
        "OnCreate",
        "OnStart",
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
    assert changed.count("# more") == 4
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


def test_the_first_start_fetches_the_kit_and_makes_its_environment(session, machine):
    takes_long = machine.root / "conda-takes-long"
    takes_long.touch()
    done = machine.run(lifecycle(session)["OnCreate"])  # SageMaker would not wait for conda
    assert done.returncode == 0, done.stderr
    takes_long.unlink()
    log = machine.folder / "set_up.log"
    until(lambda: "choose the kernel Workshop" in log.read_text() or "rror" in log.read_text())
    assert "choose the kernel Workshop" in log.read_text()
    assert (machine.folder / "workshop-kit/environment.yml").read_text() == "name: test\n"
    environment, calls = machine.folder / "workshop-env", machine.said()
    assert f"conda env create --quiet --prefix {environment}" in calls
    assert "pip install --quiet --no-deps --editable" in calls
    assert "python -m ipykernel install --user --name workshop" in calls


def test_a_set_up_that_failed_goes_on_where_it_was(session, machine):
    (machine.root / "conda-fails").touch()
    machine.run(lifecycle(session)["OnCreate"])
    environment = machine.folder / "workshop-env"
    until(lambda: "conda" in machine.said())
    set_up = [machine.folder / "set_up.sh", "s3://not-asked-again/kit.tar.gz", machine.folder]
    assert subprocess.run(set_up, env=machine.env, capture_output=True).returncode == 1
    assert not (environment / ".whole").exists()
    (machine.root / "conda-fails").unlink()
    subprocess.run(set_up, env=machine.env, check=True, capture_output=True)
    assert (environment / ".whole").exists()
    made = machine.said().count("conda env create")
    subprocess.run(set_up, env=machine.env, check=True, capture_output=True)
    assert machine.said().count("conda env create") == made


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
    environment = machine.folder / "workshop-env"
    machine.program(str(environment / "bin/python"), "")
    (environment / ".whole").touch()
    machine.program(
        "home/ec2-user/anaconda3/envs/JupyterSystemEnv/bin/python",
        f'exec "{Path(workshop.__file__).parent.parent}/.venv/bin/python" "$@"',
    )
    done = machine.run(lifecycle(session)["OnStart"])
    assert done.returncode == 0, done.stderr
    assert "ipykernel install --user --name workshop" in machine.said()
    log = machine.root / "var/log/workshop-idle-stop.log"
    until(lambda: "of 60 minutes without use" in log.read_text())


def test_a_start_without_boto3_fails_and_says_so(session, machine):
    machine.env["PATH"] = f"{machine.bin}:/usr/bin:/bin"
    machine.program("python3", "exit 1")
    content = base64.b64decode(lifecycle(session)["OnStart"]).replace(b"/usr/bin/python3", b"no")
    done = machine.run(base64.b64encode(content).decode())
    assert done.returncode == 1
    assert "would never stop by itself" in done.stderr
