"""`make bundle`: the kit and all packages that its set-up installs, in one file.

For laptops without a network: unpack it there and run `make lab` or `make run` as usual. The set-up
takes its packages from .bundle/wheels, Horovod included, which needs no compiler then. It serves
the kind of machine and the version of Python that made it; .bundle/made_for says which.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.setup.environment import LOCK, UV_FOLDER, pinned, this_machine
from tools.setup.state import REQUIREMENTS
from tools.setup.steps import output_of
from workshop.paths import BUILD, ROOT

FOLDER = "workshop-kit"


def main() -> None:
    """Write build/workshop-kit-COMMIT.tar.gz of the last commit, and print its size."""
    git = ["git", "-C", str(ROOT)]
    commit = output_of([*git, "rev-parse", "--short", "HEAD"]).strip()
    here = this_machine(sys.executable)
    if output_of([*git, "status", "--porcelain"]):
        print(f"Uncommitted changes are left out: the bundle is of commit {commit}.")
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as parent:
        kit = Path(parent, FOLDER)
        wheels = kit / ".bundle" / "wheels"
        wheels.mkdir(parents=True)
        with tempfile.TemporaryFile() as archive:
            subprocess.run([*git, "archive", "HEAD"], stdout=archive, check=True)
            archive.seek(0)
            subprocess.run(["tar", "-x", "-C", str(kit)], stdin=archive, check=True)
        shutil.copytree(UV_FOLDER / "bin", kit / UV_FOLDER.name / "bin")
        print("Fetching the packages ...", flush=True)
        download(wheels)
        pack_installed("horovod", wheels)
        (wheels.parent / "made_for").write_text(f"{here}\n")
        print("Packing ...", flush=True)
        bundle = BUILD / f"{FOLDER}-{commit}.tar.gz"
        partial = Path(parent, bundle.name)
        subprocess.run(["tar", "-czf", str(partial), "-C", parent, FOLDER], check=True)
        partial.replace(bundle)
    print(f"{bundle}: {bundle.stat().st_size / 1e9:.1f} GB, for {here}")
    print(f"On each laptop:  tar xzf {bundle.name} && cd {FOLDER} && make lab")


def download(wheels: Path) -> None:
    """Fetch what the lock names, what torch needs besides, and uv.

    The set-up will check the lock's hashes. pip demands them for all or none, and torch has none:
    so without them here.
    """
    locked = re.sub(r" \\\n +--hash=\S+", "", LOCK.read_text())
    versions = wheels.parent / "versions.txt"
    versions.write_text(locked)
    command = [sys.executable, "-m", "pip", "download", "-qq"]
    command += ["--disable-pip-version-check", "--dest", str(wheels)]
    for file in (versions, REQUIREMENTS / "uv.txt"):
        subprocess.run([*command, "--no-deps", "-r", str(file)], check=True)
    torch = f"torch=={pinned('torch')}"  # the registry's names CUDA packages that the lock lacks
    subprocess.run([*command, "--constraint", str(versions), torch], check=True)
    versions.unlink()


def pack_installed(name: str, wheels: Path) -> None:
    """Make a wheel of an installed package again: Horovod was built here, no index has it."""
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        print(f"{name} is not installed here (make setup says why): the bundle has none.")
        return
    tag = re.search(r"^Tag: (\S+)", package.read_text("WHEEL") or "", re.MULTILINE)
    assert tag and package.files, f"{name} was not installed from a wheel"
    with zipfile.ZipFile(wheels / f"{name}-{package.version}-{tag[1]}.whl", "w") as wheel:
        for file in package.files:
            made_anew = file.suffix == ".pyc" or file.name in ("INSTALLER", "REQUESTED")
            if ".." not in file.parts and not made_anew:
                wheel.write(str(file.locate()), str(file), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {error.cmd[0]} failed, see above; nothing was written.")
    except KeyboardInterrupt:
        sys.exit(130)
