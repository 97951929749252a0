"""The set-up: what it needs, when it runs, and how it fails."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import psutil
import pytest

from tools.setup import environment, horovod, interpreter, shell

ROOT = Path(__file__).resolve().parents[3]


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def alive(pid: int) -> bool:
    """True where a process runs; one that ended and waits to be collected does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def copy(tmp_path):
    """A copy of the kit's set-up, with a space in its path and no .venv."""
    root = tmp_path / "a copy"
    root.mkdir()
    for name in ("setup", "requirements"):
        folder = root / "tools" / name
        shutil.copytree(ROOT / "tools" / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


@pytest.fixture
def finished(copy):
    """That copy with a .venv that a set-up would call finished."""
    folder = copy / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text("version = 3.11.7\n")
    code = "from tools.setup import state; state.write_json(state.STAMP, {'key': state.key()})"
    subprocess.run([sys.executable, "-c", code], cwd=copy, check=True)
    return copy


def up_to_date(root: Path, **variables: str) -> bool:
    code = "from tools.setup import state; print(state.up_to_date())"
    done = subprocess.run(
        [sys.executable, "-sc", code],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip() == "True"


def test_an_older_python_without_packages_can_start_it():
    """It then looks for a fitting one by itself."""
    for path in (ROOT / "tools" / "setup").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 8))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tops = {name.split(".")[0] for name in names}
            assert tops <= {"tools", *sys.stdlib_module_names}, path


def test_finished_set_up_is_recognised_at_once(finished):
    command = [sys.executable, "-sE", "-m", "tools.setup"]
    before = os.times()
    done = subprocess.run(command, cwd=finished, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    # 0.2 s is the promise on an idle machine. Seconds of the processor: others use this one too.
    assert sum(os.times()[2:4]) - sum(before[2:4]) < 1


def test_what_makes_it_out_of_date(finished):
    assert up_to_date(finished)
    for name in (
        "tools/requirements/lock.txt",
        "pyproject.toml",
        "tools/setup/state.py",
        ".venv/pyvenv.cfg",
    ):
        text = (finished / name).read_text()
        (finished / name).write_text(f"{text}\n# changed\n")
        assert not up_to_date(finished), name
        (finished / name).write_text(text)
    mark = finished / ".venv" / "setup-unfinished"
    mark.touch()
    assert not up_to_date(finished)
    mark.unlink()
    moved = finished.with_name("moved")
    finished.rename(moved)
    assert not up_to_date(moved)
    moved.rename(finished)
    assert up_to_date(finished)
    (finished / ".venv" / "bin" / "python").unlink()
    assert not up_to_date(finished)


def test_a_compiler_installed_later_is_noticed(finished, tmp_path):
    (finished / ".venv" / "horovod.json").write_text('{"state": "no-compiler"}')
    empty = tmp_path / "empty"
    empty.mkdir()
    assert up_to_date(finished, PATH=str(empty), CXX="")
    executable(empty / "g++", "#!/bin/sh\n")
    assert not up_to_date(finished, PATH=str(empty), CXX="")
    (finished / ".venv" / "horovod.json").write_text('{"state": "failed"}')
    assert up_to_date(finished, PATH=str(empty), CXX="")


def test_a_shim_that_fails_is_passed_over(tmp_path, monkeypatch):
    shims, real = tmp_path / "shims", tmp_path / "real"
    executable(shims / "python3.11", "#!/bin/sh\necho 'pyenv: command not found' >&2; exit 127\n")
    executable(real / "python3.12", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    monkeypatch.setenv("PATH", f"{shims}:{real}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = interpreter.find_python(None)
    assert interpreter.probe(found)["version"] in interpreter.VERSIONS
    assert not found.startswith(str(shims))


FITS = {"version": "3.11", "full_version": "3.11.2", "bits": 64, "can_make_venv": True}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (None, r"(?s)No Python 3\.11 or 3\.12.*apt-get.*PYTHON="),
        ({"version": "3.9", "full_version": "3.9.1"}, r"is Python 3\.9\.1; Python 3\.11 or 3\.12"),
        ({"can_make_venv": False, "executable": "/usr/bin/python3.11"}, r"python3\.11-venv"),
        ("no program", "does not run"),
    ],
)
def test_without_a_python_that_fits_it_says_what_to_do(tmp_path, monkeypatch, facts, said):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if facts else str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    python = tmp_path / "py"
    if isinstance(facts, dict):
        executable(python, f"#!/bin/sh\ncat <<'X'\n{json.dumps(FITS | facts)}\nX\n")
    with pytest.raises(shell.SetupError, match=said):
        interpreter.find_python(str(python) if facts else None)


def test_a_failed_step_shows_the_end_of_its_log(tmp_path):
    log = tmp_path / "log" / "step.log"
    command = ["sh", "-c", "for i in $(seq 99); do echo line $i; done; exit 3"]
    with pytest.raises(shell.StepFailed, match=r"(?s)try: exit code 3.*line 99") as caught:
        shell.run_step("try", command, log=log, environment=dict(os.environ))
    assert "line 1\n" not in str(caught.value)
    assert "line 1\n" in log.read_text()


def test_a_failed_download_speaks_of_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "LOGS", tmp_path)
    with pytest.raises(shell.SetupError, match="package index could not be reached"):
        environment.network_step(
            "install", ["sh", "-c", "echo 'error: dns error' >&2; exit 2"], dict(os.environ)
        )
    with pytest.raises(shell.StepFailed):
        environment.network_step(
            "install", ["sh", "-c", "echo other >&2; exit 2"], dict(os.environ)
        )


SLOW_POPEN = """
import subprocess, time
class Popen(subprocess.Popen):  # as on a busy machine: the child runs, Popen has not returned
    def _execute_child(self, *given):
        super()._execute_child(*given)
        time.sleep(2)
subprocess.Popen = Popen
"""


@pytest.mark.parametrize("popen", ["", SLOW_POPEN], ids=["running", "starting"])
def test_an_interrupted_step_leaves_no_process(popen, tmp_path):
    code = (
        f"{popen}\n"
        "import sys; from pathlib import Path; from tools.setup import shell\n"
        "shell.run_step('t', ['sh', '-c', 'sleep 321 & echo $! > pid; wait'],"
        " log=Path('log'), environment={'PATH': '/usr/bin:/bin'}, folder=Path.cwd())"
    )
    pid_file = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) != 0
    while alive(int(pid_file.read_text())):
        assert time.monotonic() < deadline + 60
        time.sleep(0.05)


def test_nothing_of_make_or_another_python_reaches_a_tool(monkeypatch):
    for name in ("MAKEFLAGS", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.setenv(name, "x")
    kept = shell.clean_environment(EXTRA="1")
    assert kept["EXTRA"] == "1" and not set(kept) & set(shell.FOREIGN)


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
    given = environment.uv_environment()
    assert given["UV_FIND_LINKS"] == "/a,/b"
    assert given["UV_DEFAULT_INDEX"] == "https://files/simple"
    assert given["UV_INDEX"] == "https://one https://two"
    assert given["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    monkeypatch.setenv("UV_FIND_LINKS", "/mine")
    assert environment.uv_environment()["UV_FIND_LINKS"] == "/mine"


def test_without_a_cache_uv_goes_on(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("a file where a folder should be")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(environment, "output_of", lambda command: "")
    assert environment.uv_environment()["UV_NO_CACHE"] == "1"
    assert "cannot be written" in capsys.readouterr().out
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "new"))
    assert "UV_NO_CACHE" not in environment.uv_environment()


def wheel(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("horovod/__init__.py", "x" * 5000)
    return path


def test_the_kept_wheel_is_used_only_when_whole(tmp_path):
    built = wheel(tmp_path / "built" / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl")
    cache = tmp_path / "cache"
    assert horovod.cached_wheel(cache) is None
    horovod.keep(built, cache)
    kept = horovod.cached_wheel(cache)
    assert kept is not None and [p.name for p in cache.iterdir()] == [built.name]
    whole = kept.read_bytes()
    for damaged in (whole[:-200], whole[:2000] + b"?" + whole[2001:]):
        kept.write_bytes(damaged)
        assert horovod.cached_wheel(cache) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, capsys):
    built = wheel(tmp_path / "horovod-0.28.1-py3-none-any.whl")
    (tmp_path / "cache").write_text("a file where a folder should be")
    horovod.keep(built, tmp_path / "cache" / "key")
    assert "will build it again" in capsys.readouterr().out


def test_the_caches_key_names_what_the_wheel_depends_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = horovod.cache_folder(Path(sys.prefix))
    assert folder.is_relative_to(tmp_path)
    for part in ("horovod0.28.1", "tensorflow2.18.1", "openmpi5.0.11"):
        assert part in folder.name
    monkeypatch.setitem(horovod.FLAGS, "HOROVOD_WITHOUT_GLOO", "0")
    assert horovod.cache_folder(Path(sys.prefix)) != folder


def test_without_compiler_the_rest_is_set_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(horovod, "compiler", lambda: None)
    horovod.install_horovod(tmp_path, ["false"], dict(os.environ))
    said = capsys.readouterr().out.strip()
    assert len(said.splitlines()) == 1 and "apt-get install g++ make" in said
    assert json.loads((tmp_path / "horovod.json").read_text())["state"] == "no-compiler"


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
