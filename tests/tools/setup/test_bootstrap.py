"""The set-up: what it needs, when it runs, and how it fails."""

import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from emulator_harness import captured, executable, until, wait_until_gone

from tools.bundle import pack_installed
from tools.setup import environment, horovod, state, steps

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A copy of the set-up, with a space in its path and a .venv that a set-up would call done."""
    monkeypatch.delenv("PYTHONPATH", raising=False)  # it may name the original's folder
    root = tmp_path / "a copy"
    for name in ("setup", "requirements"):
        folder = root / "tools" / name
        shutil.copytree(ROOT / "tools" / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    folder = root / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text("version = 3.11.7\n")
    code = "from tools.setup import state; state.write_json(state.STAMP, {'key': state.key()})"
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
    return root


def outdated(root: Path, **variables: str) -> bool:
    code = "from tools.setup import state; print(state.outdated())"
    command = [sys.executable, "-sc", code]
    done = captured(command, cwd=root, env=os.environ | variables, check=True)
    return done.stdout.strip() == "True"


def test_an_older_python_without_packages_can_start_it():
    """uv then looks for a fitting one."""
    for path in (ROOT / "tools" / "setup").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 8))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.split(".")[0] for name in names}
            assert tops <= {"tools", *sys.stdlib_module_names}, path


def test_a_finished_set_up_is_recognised_without_a_word(finished):
    command = [sys.executable, "-sE", "-m", "tools.setup"]
    assert captured(command, cwd=finished, check=True).stdout == ""


def test_what_makes_it_out_of_date(finished):
    assert not outdated(finished)
    for name in (
        "tools/requirements/lock.txt",
        "pyproject.toml",
        "tools/setup/state.py",
        ".venv/pyvenv.cfg",
    ):
        text = (finished / name).read_text()
        (finished / name).write_text(f"{text}\n# changed\n")
        assert outdated(finished), name
        (finished / name).write_text(text)
    moved = finished.with_name("moved")
    finished.rename(moved)
    assert outdated(moved)
    moved.rename(finished)
    assert not outdated(finished)
    (finished / ".venv" / "bin" / "python").unlink()
    assert outdated(finished)


def test_a_compiler_installed_later_is_noticed(finished, tmp_path):
    (finished / ".venv" / "horovod.json").write_text('{"state": "no-compiler"}')
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not outdated(finished, PATH=str(empty), CXX="")
    executable(empty / "g++", "#!/bin/sh\n")
    assert outdated(finished, PATH=str(empty), CXX="")
    (finished / ".venv" / "horovod.json").write_text('{"state": "failed"}')
    assert not outdated(finished, PATH=str(empty), CXX="")


@pytest.fixture
def made(monkeypatch, tmp_path):
    """The commands that make_venv runs, in a folder of its own that holds a finished .venv."""
    commands = []
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "STAMP", tmp_path / ".venv" / "setup.json")
    monkeypatch.setattr(environment, "run", lambda title, command, *_: commands.append(command))
    monkeypatch.setattr(environment, "find_python", lambda uv, python: sys.executable)
    executable(tmp_path / ".venv" / "bin" / "pip", f"#!{tmp_path}/.venv/bin/python\n")
    environment.STAMP.touch()
    return commands


def test_a_half_made_venv_is_never_used(made):
    environment.make_venv("uv", None)
    assert made == [] and not environment.STAMP.exists()
    environment.make_venv("uv", None)  # as after an interrupt: nothing wrote the stamp again
    assert "--clear" in made[0]


def test_a_moved_venv_is_made_again(made):
    (environment.VENV / "bin" / "pip").write_text("#!/elsewhere/.venv/bin/python\n")
    environment.make_venv("uv", None)
    assert "--clear" in made[0]


def test_torch_gets_the_cuda_packages_that_the_lock_leaves_out(made, monkeypatch):
    """The registry's wheel cannot be imported without them."""
    (environment.VENV / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    monkeypatch.setattr(environment, "can_compile", lambda settings: True)
    environment.install_locked("uv", {})
    locked, torch = made
    assert "--no-deps" in locked and "--no-deps" not in torch
    assert torch[-3:] == ["--constraints", str(environment.LOCK), "torch==2.13.0"]


def test_another_folders_venv_is_not_emptied(made):
    (environment.VENV / "bin" / "pip").write_text("#!/elsewhere/.venv/bin/python\n")
    elsewhere = environment.VENV.rename(environment.VENV.with_name("elsewhere"))
    environment.VENV.symlink_to(elsewhere)
    with pytest.raises(steps.SetupError, match="Delete the link"):
        environment.make_venv("uv", None)
    assert made == [] and environment.STAMP.exists()


@pytest.mark.parametrize(
    ("python", "message"),
    [
        (None, r"(?s)No Python 3\.11 or 3\.12.*apt-get.*PYTHON="),
        ("echo 3.9.1", r"is Python 3\.9\.1; Python 3\.11 or 3\.12"),
        ("exit 1", "does not run"),
    ],
)
def test_without_a_python_that_fits_it_says_what_to_do(tmp_path, python, message):
    program = executable(tmp_path / "py", f"#!/bin/sh\n{python}\n")
    with pytest.raises(steps.SetupError, match=message):
        environment.find_python("false", str(program) if python else None)


def test_without_pip_it_says_how_to_get_uv(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "UV_FOLDER", tmp_path / "uv")
    monkeypatch.setattr(environment, "output_of", lambda command: "")
    with pytest.raises(steps.SetupError, match=r"(?s)no working pip or venv.*python3-venv"):
        environment.install_uv()
    monkeypatch.setattr(environment, "UV_FOLDER", Path("/proc/uv"))
    with pytest.raises(steps.SetupError, match=r"(?s)Cannot write in .*folder of your own"):
        environment.install_uv()


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("error: dns error", "package index could not be reached"),
        ("error: tunnel error: unsuccessful", "https_proxy"),
        ("failed to write: No space left on device (os error 28)", "The disk is full"),
        ("other", "exit code 3"),
    ],
)
def test_a_failed_step_shows_the_end_of_its_output_and_what_to_do(tmp_path, output, advice):
    command = ["sh", "-c", f"for i in $(seq 99); do echo line $i; done; echo '{output}'; exit 3"]
    with pytest.raises(steps.SetupError) as error:
        steps.run("try", command, dict(os.environ), tmp_path / "log" / "step.log")
    assert "line 99" in str(error.value) and "line 1\n" not in str(error.value)
    assert advice in str(error.value)
    assert ("again" in str(error.value)) == (output != "other")


def test_an_interrupted_step_leaves_no_process(tmp_path):
    code = (
        "from pathlib import Path; from tools.setup import steps\n"
        "steps.run('t', ['sh', '-c', 'sleep 321 & echo $! > pid; wait'],"
        " {'PATH': '/usr/bin:/bin'}, Path('log'))"
    )
    pid_file = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: pid_file.exists() and pid_file.read_text().strip())
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) != 0
    wait_until_gone([int(pid_file.read_text())])


def test_nothing_of_make_or_another_python_reaches_a_tool(monkeypatch):
    for name in steps.FOREIGN:
        monkeypatch.setenv(name, "x")
    variables = steps.clean_environment(EXTRA="1")
    assert variables["EXTRA"] == "1" and not set(variables) & steps.FOREIGN


LISTING = """\
global.index-url='https://files/simple'
global.find-links='/from/file'
:env:.find-links='/a /b'
global.extra-index-url='https://one https://two'
"""


def test_pips_settings_reach_uv(monkeypatch):
    for name in ("UV_FIND_LINKS", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_STRATEGY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environment, "output_of", lambda command: LISTING)
    variables = environment.uv_settings(Path("python"))
    assert variables["UV_FIND_LINKS"] == "/a,/b"
    assert variables["UV_DEFAULT_INDEX"] == "https://files/simple"
    assert variables["UV_INDEX"] == "https://one https://two"
    assert variables["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    monkeypatch.setenv("UV_FIND_LINKS", "/set")
    assert environment.uv_settings(Path("python"))["UV_FIND_LINKS"] == "/set"


def test_the_key_of_horovods_wheel_names_what_it_depends_on(monkeypatch):
    key = horovod.built_for()
    assert "tensorflow2.18.1" in key and "openmpi5.0.11" in key
    monkeypatch.setitem(horovod.FLAGS, "HOROVOD_WITHOUT_GLOO", "0")
    assert horovod.built_for() != key


def test_horovod_is_built_with_the_kits_pins(monkeypatch, tmp_path):
    """uv gets the release's hash, the constraints of its own build, and the key of the wheel."""
    calls = []

    def run(title, command, variables, log):
        constraints = Path(command[command.index("--build-constraints") + 1])
        calls.append((command, variables, constraints.read_text()))
        if "--offline" in command:
            raise steps.SetupError("uv has no wheel")

    monkeypatch.setattr(horovod, "run", run)
    horovod.build(tmp_path, "uv", {"UV_INDEX": "x"}, tmp_path / "log")
    (offline, *_), (command, variables, constraints) = calls
    assert offline == [*command, "--offline"], "the wheel that was built before comes first"
    assert f"horovod:built-for={horovod.built_for()}" in command
    assert str(state.REQUIREMENTS / "horovod.txt") in command
    assert variables["UV_INDEX"] == "x" and variables["HOROVOD_WITH_MPI"] == "1"
    assert constraints.count("\nsetuptools==") == 1 and "\nsetuptools==69.5.1" in constraints
    assert "\ntensorflow==2.18.1" in constraints


@pytest.mark.parametrize(
    ("compiler", "state", "message"),
    [
        (None, "no-compiler", "apt-get install g++ make"),
        ("g++", "failed", "read {}/log/horovod.log"),
    ],
)
def test_where_horovod_is_not_built_the_rest_is_set_up(
    tmp_path, monkeypatch, capsys, compiler, state, message
):
    monkeypatch.setattr(horovod, "compiler", lambda: compiler)
    monkeypatch.setattr(horovod.shutil, "which", lambda name: name)
    horovod.install_horovod(tmp_path, "false", dict(os.environ))
    output = capsys.readouterr().out.strip()
    assert message.format(tmp_path) in output
    assert compiler or len(output.splitlines()) == 1
    assert json.loads((tmp_path / "horovod.json").read_text())["state"] == state


@pytest.mark.parametrize(("kilobytes", "jobs"), [(500_000, 1), (3_300_000, 2), (99_000_000, 8)])
def test_the_build_takes_no_more_memory_than_there_is(monkeypatch, kilobytes, jobs):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(horovod.Path, "read_text", lambda self: f"MemAvailable: {kilobytes} kB")
    assert horovod.build_jobs() == jobs


def test_packages_are_compiled_once_for_all():
    for package in ("tensorflow", "sagemaker"):
        folder = Path(importlib.util.find_spec(package).origin).parent
        compiled = {path: importlib.util.cache_from_source(path) for path in folder.rglob("*.py")}
        missing = [path for path, cached in compiled.items() if not Path(cached).exists()]
        assert len(missing) <= 0.01 * len(compiled), missing[:5]  # templates that are no Python


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """A kit that `make bundle` packed, for another machine."""
    folder = tmp_path / ".bundle"
    (folder / "wheels").mkdir(parents=True)
    (folder / "made_for").write_text("Python 3.11 on Plan9 mips\n")
    monkeypatch.setattr(environment, "BUNDLE", folder)
    return folder


def test_a_bundle_asks_no_index(bundle, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    settings = environment.uv_settings(Path(sys.executable))
    assert settings["UV_FIND_LINKS"] == str(bundle / "wheels")
    assert settings["UV_CACHE_DIR"] == str(bundle / "cache")
    assert settings["UV_NO_INDEX"] == settings["UV_OFFLINE"] == "1"
    assert "UV_DEFAULT_INDEX" not in settings


def test_a_bundle_for_another_machine_says_which(bundle, tmp_path):
    uv = executable(tmp_path / "uv", f"#!/bin/sh\necho {sys.executable}\n")
    with pytest.raises(
        steps.SetupError, match=r"made for Python 3\.11 on Plan9 mips; this is Python"
    ):
        environment.find_python(str(uv), None)
    here = environment.this_machine(sys.executable)
    (bundle / "made_for").write_text(f"{here}\n")
    assert environment.find_python(str(uv), None) == sys.executable


def test_a_package_that_was_built_here_is_packed_again(tmp_path):
    pack_installed("jmespath", tmp_path)
    (wheel,) = tmp_path.glob("jmespath-*.whl")
    command = [sys.executable, "-m", "pip", "install", "-qq", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", tmp_path / "installed", wheel], check=True)
    code = "import jmespath; print(jmespath.__file__, jmespath.search('a', {'a': 1}))"
    variables = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    done = captured([sys.executable, "-c", code], env=variables, check=True)
    assert done.stdout == f"{tmp_path}/installed/jmespath/__init__.py 1\n"
