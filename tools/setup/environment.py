"""Fetch uv, make .venv and install what the lock names."""

from __future__ import annotations

import ast
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tools.setup.state import REQUIREMENTS, ROOT, STAMP, VENV
from tools.setup.steps import SetupError, clean_environment, output_of, run

VERSIONS = ("3.11", "3.12")  # the first is preferred
PYTHON = VENV / "bin" / "python"
UV_FOLDER = ROOT / ".uv"
LOCK = REQUIREMENTS / "lock.txt"
LOG = ROOT / ".uv" / "setup.log"
BUNDLE = ROOT / ".bundle"  # in a kit that `make bundle` packed: all packages, for this machine
NO_PYTHON = """\
{problem}; Python 3.11 or 3.12 (64 bit) is needed.
Install one, for example:
  Debian 12:       sudo apt-get install python3.11 python3.11-venv python3.11-dev
  Ubuntu 24.04:    sudo apt-get install python3.12 python3.12-venv python3.12-dev
  macOS:           brew install python@3.11
  anywhere:        uv python install 3.11, or pyenv install 3.11
If it is outside PATH: make setup PYTHON=/path/to/python3.11"""
NO_PIP = """\
uv, which installs the packages, could not be fetched: {python} has no working pip or venv.
Install one (Debian, Ubuntu: sudo apt-get install python3-venv), or uv {version} itself,
then run make setup again."""
NOT_FOR = """\
This bundle was made for {made_for}; this is {here}.
Install that Python (Debian, Ubuntu: sudo apt-get install python{version} python{version}-venv), or
run make bundle on such a machine. With a network, delete .bundle and run make again."""
# sagemaker-training's own mpirun launcher preloads a C module of this name to give a container
# its host name. Here the kernel does, so an empty module will do where no C compiler is found.
GETHOSTNAME = '"""Stands in for the C module of sagemaker-training: no compiler was found."""\n'


def pinned(name: str, file: str = "lock.txt") -> str:
    """The version of a package in a requirements file."""
    text = (REQUIREMENTS / file).read_text()
    match = re.search(rf"^{re.escape(name)}==([^\s;]+)", text, re.MULTILINE)
    if match is None:
        raise SetupError(f"tools/requirements/{file} does not pin {name}: run make lock.")
    return match[1]


def install_uv() -> str:
    """The path of the pinned uv, fetched into .uv if it is not there."""
    version = pinned("uv", "uv.txt")
    for program in (str(UV_FOLDER / "bin" / "uv"), shutil.which("uv")):
        if program and output_of([program, "--version"]).split()[1:2] == [version]:
            return program
    try:
        shutil.rmtree(UV_FOLDER, ignore_errors=True)
        UV_FOLDER.mkdir()
    except OSError as error:
        raise SetupError(
            f"Cannot write in {ROOT}: {error.strerror}.\n"
            "Copy the kit to a folder of your own and run make there."
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        python = sys.executable
        if not output_of([python, "-m", "pip", "--version"]):
            # Debian's Python has pip only inside an environment.
            output_of([python, "-m", "venv", folder])
            python = f"{folder}/bin/python"
        if not output_of([python, "-m", "pip", "--version"]):
            raise SetupError(NO_PIP.format(python=sys.executable, version=version))
        command = [python, "-m", "pip", "install", "--disable-pip-version-check"]
        command += ["--require-hashes", "-r", str(REQUIREMENTS / "uv.txt")]
        run("fetch uv", [*command, "--target", str(UV_FOLDER)], clean_environment(), LOG)
    return str(UV_FOLDER / "bin" / "uv")


def make_venv(uv: str, python: str | None) -> None:
    """Make .venv, unless a finished one of a fitting Python is there."""
    executable = find_python(uv, python)
    pip = VENV / "bin" / "pip"
    # Not in a moved folder: the scripts name the old one.
    belongs_here = pip.exists() and str(VENV).encode() in pip.read_bytes()[:4096]
    same_python = python is None or version_of(str(PYTHON)) == version_of(executable)
    if belongs_here and STAMP.exists() and same_python:
        STAMP.unlink()
        return
    if VENV.is_symlink() and pip.exists() and not belongs_here:  # uv would empty it
        raise SetupError(
            f"{VENV} is a link to {VENV.resolve()}, which another folder set up.\n"
            "Delete the link, then run the same command again: this folder gets its own."
        )
    command = [uv, "venv", "--clear", "--seed", "--python", executable, str(VENV)]
    run(f"make .venv of {executable}", command, uv_settings(Path(sys.executable)), LOG)


def find_python(uv: str, python: str | None) -> str:
    """The path of a Python that the lock fits: `python`, or the first that uv finds."""
    if python:
        if version_of(python).rpartition(".")[0] not in VERSIONS:
            actual = version_of(python)
            problem = f"PYTHON={python} " + (f"is Python {actual}" if actual else "does not run")
            raise SetupError(NO_PYTHON.format(problem=problem))
        return python
    made_for = BUNDLE.exists() and (BUNDLE / "made_for").read_text().strip()
    for version in VERSIONS:
        command = [uv, "python", "find", "--no-project", "--no-python-downloads", "--system"]
        executable = output_of([*command, version]).strip()
        if executable and made_for in (False, this_machine(executable)):
            return executable
    if made_for:
        here = this_machine(sys.executable)
        version = made_for.split()[1]
        raise SetupError(NOT_FOR.format(made_for=made_for, here=here, version=version))
    raise SetupError(NO_PYTHON.format(problem="No Python 3.11 or 3.12 was found"))


def version_of(python: str) -> str:
    """A Python's full version; empty if it does not run or has 32 bits."""
    code = "import platform, sys; sys.maxsize > 2**32 and print(platform.python_version())"
    return output_of([python, "-c", code]).strip()


def this_machine(python: str) -> str:
    """Whom a bundle serves, such as "Python 3.11 on Linux x86_64"."""
    version = version_of(python).rpartition(".")[0]
    return f"Python {version} on {platform.system()} {platform.machine()}"


def uv_settings(python: Path) -> dict[str, str]:
    """The environment for uv: pip's settings (files and PIP_*) under uv's names.

    In a bundle there is no index: all packages lie in a folder.
    """
    if BUNDLE.exists():
        # In a cache that knows an index uv may look for a package there, and not in the folder.
        folders = {"UV_FIND_LINKS": str(BUNDLE / "wheels"), "UV_CACHE_DIR": str(BUNDLE / "cache")}
        return clean_environment(UV_OFFLINE="1", UV_NO_INDEX="1", **folders)
    settings: dict[str, str] = {}
    for line in output_of([str(python), "-m", "pip", "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        # Variables are listed last and so win over the files, as in pip.
        settings[name.rpartition(".")[2].replace("_", "-")] = str(ast.literal_eval(value))
    variables = {
        "UV_FIND_LINKS": ",".join(settings.get("find-links", "").split()),
        "UV_DEFAULT_INDEX": settings.get("index-url", ""),
        "UV_INDEX": " ".join(settings.get("extra-index-url", "").split()),
        "SSL_CERT_FILE": settings.get("cert", ""),
        "UV_HTTP_TIMEOUT": settings.get("timeout", "60"),
        "UV_COMPILE_BYTECODE_TIMEOUT": "600",  # seconds for a file
        # pip looks in every index; uv stops at the first that has the name, unless told this.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if "extra-index-url" in settings else "",
    }
    return clean_environment(**{k: v for k, v in variables.items() if v and k not in os.environ})


def install_locked(uv: str, settings: dict[str, str]) -> None:
    """Install the lock's exact versions; what is there already stays.

    Bytecode is compiled now: a job's instance cannot keep what it compiles, nor can a process
    under PYTHONDONTWRITEBYTECODE, and TensorFlow's 10 seconds of it would come each time.
    """
    stand_in = next((VENV / "lib").glob("python3.*")) / "site-packages" / "gethostname.py"
    locked = [uv, "pip", "install", "--python", str(PYTHON), "--no-deps"]
    locked += ["--build-constraints", str(LOCK), "-r", str(LOCK)]
    compiles = can_compile(settings)
    if not compiles:  # "true" in the place of a compiler makes no module, and no error
        locked += ["--config-settings-package", "sagemaker-training:compiler=none"]
        settings = {**settings, "CC": "true"}
    elif stand_in.exists():
        locked += ["--reinstall-package", "sagemaker-training"]
    run("install the locked packages", [*locked, "--compile-bytecode"], settings, LOG)
    # The lock has no CUDA packages. The registry's torch doesn't start without them, and pins
    # them itself; a CPU wheel needs none.
    needs = [uv, "pip", "install", "--python", str(PYTHON), "--constraints", str(LOCK)]
    run("install what torch needs", [*needs, f"torch=={pinned('torch')}"], settings, LOG)
    if compiles:
        stand_in.unlink(missing_ok=True)
    else:
        stand_in.write_text(GETHOSTNAME)


def install_kit(uv: str, settings: dict[str, str]) -> None:
    """Install the two packages of this repository, to be edited in place."""
    command = [uv, "pip", "install", "--python", str(PYTHON), "--no-deps", "--no-build-isolation"]
    command += ["--editable", str(ROOT / "local-sagemaker"), "--editable", str(ROOT)]
    run("install the kit", command, settings, LOG)


def can_compile(settings: dict[str, str]) -> bool:
    """True where a C file that includes Python.h compiles."""
    code = "import sysconfig as s; print(s.get_config_var('CC') or 'cc', s.get_paths()['include'])"
    *cc, include = output_of([str(PYTHON), "-c", code]).split()
    compiler = settings.get("CC", "").split() or cc
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "try.c")
        source.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
        output_of([*compiler, "-I", include, "-c", str(source), "-o", f"{folder}/try.o"])
        return Path(folder, "try.o").exists()
