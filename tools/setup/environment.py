"""Make .venv and install what the lock names."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.setup.interpreter import fits, probe
from tools.setup.shell import SetupError, StepFailed, clean_environment, output_of, run_step, say
from tools.setup.state import ROOT, UNFINISHED, VENV

PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
# Compiled once, now: a job's instance cannot keep what it compiles, nor can any process where
# PYTHONDONTWRITEBYTECODE is set, and TensorFlow's 10 seconds of it would come each time.
UV_INSTALL = [str(UV), "pip", "install", "--python", str(PYTHON), "--compile-bytecode"]
LOCK = ROOT / "tools" / "requirements" / "lock.txt"
LOGS = VENV / "log"
NO_NETWORK = re.compile(
    r"dns error|connect error|error resolving|Failed to fetch|Network|offline"
    r"|NewConnectionError|Could not find a version|there is no version of|timed out",
    re.IGNORECASE,
)
NETWORK_HELP = (
    "The package index could not be reached, or lacks this version. Check the connection\n"
    "(https_proxy where you are behind a proxy, PIP_INDEX_URL where you have a mirror), then run\n"
    "the same command again: what was downloaded is kept."
)
# The launchers of sagemaker-training import a C module of this name. On AWS it is preloaded
# to answer gethostname(); here host names are real, so where no C compiler is, this will do.
GETHOSTNAME = '''"""Stands in for sagemaker-training's C module, which needs a compiler to build.

The module is only preloaded by that package's own mpirun launcher, to give a container its
host name. Here an instance has its host name from the kernel."""
'''


def make_venv(python: str) -> None:
    """Create .venv, or begin again where an earlier set-up did not finish."""
    facts = probe(str(PYTHON)) if PYTHON.exists() else None
    moved = PYTHON.exists() and not fits_path()
    if VENV.exists() and (UNFINISHED.exists() or moved or not fits(facts)):
        why = "unfinished" if UNFINISHED.exists() else "moved" if moved else "of another Python"
        say(f"  .venv is {why}: making it anew")
        shutil.rmtree(VENV)
    if VENV.exists():
        UNFINISHED.touch()
        return
    try:
        VENV.mkdir()
        UNFINISHED.touch()
    except OSError as error:
        raise SetupError(
            f"Cannot write in {ROOT}: {error.strerror}.\n"
            "Copy the kit to a folder of your own and run make there."
        ) from error
    command = [python, "-m", "venv", str(VENV)]
    run_step("make .venv", command, log=LOGS / "venv.log", environment=clean_environment())


def fits_path() -> bool:
    """True where .venv's scripts point into this very folder."""
    script = VENV / "bin" / "pip"
    return script.exists() and str(VENV).encode() in script.read_bytes()[:4096]


def pip_settings() -> dict[str, str]:
    """What pip was told about where packages are (files and PIP_* variables)."""
    settings: dict[str, str] = {}
    listing = output_of([str(PYTHON), "-m", "pip", "config", "list"]) or ""
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        try:
            # Variables are listed last and so win over the files, as in pip.
            settings[name.rpartition(".")[2].replace("_", "-")] = str(ast.literal_eval(value))
        except (ValueError, SyntaxError):
            continue
    return settings


def uv_environment() -> dict[str, str]:
    """The environment for uv: pip's settings under uv's names, unless uv has its own."""
    settings = pip_settings()
    wanted = {
        "UV_FIND_LINKS": ",".join(settings.get("find-links", "").split()),
        "UV_DEFAULT_INDEX": settings.get("index-url", ""),
        "SSL_CERT_FILE": settings.get("cert", ""),
        "UV_COMPILE_BYTECODE_TIMEOUT": "600",  # seconds for one file; 60 by default
    }
    extra = {k: v for k, v in wanted.items() if v and k not in os.environ}
    # pip looks in every index; uv stops at the first that has the name, unless told this.
    indexes = settings.get("extra-index-url", "").split()
    if indexes and "UV_INDEX" not in os.environ:
        extra["UV_INDEX"] = " ".join(indexes)
        extra.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    if not can_write(uv_cache()):
        say(f"  {uv_cache()} cannot be written: nothing downloaded will be kept")
        extra["UV_NO_CACHE"] = "1"
    return clean_environment(**extra)


def uv_cache() -> Path:
    """Where uv keeps what it downloads, unless told otherwise."""
    if os.environ.get("UV_CACHE_DIR"):
        return Path(os.environ["UV_CACHE_DIR"])
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "uv"


def can_write(folder: Path) -> bool:
    """True where files can be made in `folder`, which is created where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=str(folder)):
            return True
    except OSError:
        return False


def install_uv() -> None:
    """Put the locked uv into .venv."""
    requirements = ROOT / "tools" / "requirements" / "uv.txt"
    pinned = re.search(r"^uv==(\S+)", requirements.read_text(), re.MULTILINE)
    present = output_of([str(UV), "--version"]) or ""
    if pinned and present.split()[1:2] == [pinned[1]]:
        return
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "-r", str(requirements)]
    network_step("install uv", command, clean_environment())


def network_step(title: str, command: list[str], environment: dict[str, str]) -> None:
    """A step that downloads: say so where the network is what failed."""
    log = LOGS / "install.log"
    try:
        run_step(title, command, log=log, environment=environment)
    except StepFailed as error:
        if NO_NETWORK.search(str(error)):
            raise SetupError(f"{error}\n{NETWORK_HELP}") from error
        raise


def install_locked(environment: dict[str, str]) -> None:
    """Install the lock's exact versions, and the kit itself."""
    # The pins hold for what two source-only packages are built with, too.
    pinned = ["--build-constraints", str(LOCK)]
    if can_build_extensions():
        stand_in = site_packages() / "gethostname.py"
        again = ["--reinstall-package", "sagemaker-training"] if stand_in.exists() else []
        command = [*UV_INSTALL, *pinned, *again, "-r", str(LOCK)]
        network_step("install the locked packages", command, environment)
        stand_in.unlink(missing_ok=True)
    else:
        install_without_compiler(pinned, environment)
    kit = [*UV_INSTALL, "--no-deps", "--no-build-isolation"]
    kit += ["--editable", str(ROOT / "local-sagemaker"), "--editable", str(ROOT)]
    run_step("install the kit", kit, log=LOGS / "install.log", environment=environment)


def install_without_compiler(pinned: list[str], environment: dict[str, str]) -> None:
    """As install_locked, but sagemaker-training without its one C module."""
    from tools.setup.lock import blocks

    everything = blocks(LOCK.read_text())
    toolkit = [block for block in everything if block[0].startswith("sagemaker-training==")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rest = folder / "rest.txt"
        rest.write_text("\n".join("\n".join(b) for b in everything if b not in toolkit) + "\n")
        only = folder / "toolkit.txt"
        only.write_text("\n".join("\n".join(b) for b in toolkit) + "\n")
        command = [*UV_INSTALL, *pinned, "-r", str(rest)]
        network_step("install the locked packages", command, environment)
        wheel = wheel_without_extension(only, folder)
        again = ["--no-deps", "--reinstall-package", "sagemaker-training"]
        command = [*UV_INSTALL, *again, str(wheel)]
        network_step("install sagemaker-training", command, environment)
    (site_packages() / "gethostname.py").write_text(GETHOSTNAME)


def wheel_without_extension(requirements: Path, folder: Path) -> Path:
    """Build the wheel of a source-only package, leaving out its compiled modules."""
    command = [str(PYTHON), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    command += ["--no-build-isolation", "--require-hashes", "-r", str(requirements)]
    network_step("fetch sagemaker-training", [*command, "-d", str(folder)], clean_environment())
    archive = next(folder.glob("*.tar.gz"))
    shutil.unpack_archive(str(archive), str(folder / "source"))
    source = next((folder / "source").iterdir())
    command = [str(PYTHON), "setup.py", "--quiet", "build_py", "bdist_wheel", "--skip-build"]
    command += ["--dist-dir", str(folder)]
    log = LOGS / "install.log"
    run_step(
        "build sagemaker-training", command, log=log, environment=clean_environment(), folder=source
    )
    return next(folder.glob("*.whl"))


def site_packages() -> Path:
    return next((VENV / "lib").glob("python3.*")) / "site-packages"


def can_build_extensions() -> bool:
    """True where a C file that includes Python.h compiles."""
    facts = probe(str(PYTHON)) or {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "try.c"
        source.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
        command = [*facts.get("cc", "cc").split(), "-I", facts.get("include", "")]
        command += ["-c", str(source), "-o", str(Path(folder) / "try.o")]
        try:
            done = subprocess.run(command, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0
