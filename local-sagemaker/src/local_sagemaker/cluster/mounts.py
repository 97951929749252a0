"""What an instance of namespaces finds in its file system.

Its own /opt/ml, /tmp, /var/tmp, /run, /dev/shm, home and /etc; a layer over the Python environment;
all else of this machine to read, but nothing of the emulator's state.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from pathlib import Path

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.event_loop import emit_note
from local_sagemaker.cluster.spec import ClusterSpec, Host

TMP = ("/tmp", "/var/tmp")
HOME = "/run/home"
# Variables that name what an instance needs of this machine, wherever it is.
NAMING = ("PATH", "LD_LIBRARY_PATH", "PIP_", "UV_", "SSL_CERT", "REQUESTS_CA_BUNDLE")


def make(spec: ClusterSpec, host: Host) -> None:
    """Give the instance its own file system."""
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    writable = _image_layer(spec, host) + _etc(spec, host)
    with contextlib.suppress(OSError):
        linux.mount("tmpfs", "/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV)
        writable.append("/dev/shm")
    _mount_opt_ml(host.path / "ml")
    linux.mount("tmpfs", "/run", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    os.mkdir(HOME)
    if os.path.isdir(spec.folder):
        linux.bind(spec.folder, spec.folder)
        writable.append(spec.folder)
    writable += _own_tmp(host, spec.folder)
    os.chdir("/")  # what this process started in may be hidden now, and is to be
    try:
        linux.read_only("/", recursive=True)
    except OSError as error:
        emit_note(host.name, f"this kernel leaves the machine's files writable to jobs: {error}")
        return
    for place in (*writable, "/opt/ml", "/run"):
        linux.read_only(place, undo=True)
    state = host.path.parents[2]  # STATE/jobs/JOB/algo-N
    if state.is_dir():  # not if it was in /tmp
        linux.mount("tmpfs", state, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=4k,mode=555")


def _own_tmp(host: Host, folder: str) -> list[str]:
    """Hide the machine's /tmp and /var/tmp, and the sockets in them, behind the instance's own.

    What it needs of them is there again: this package and its Python, what variables name, and the
    folder that the job shares with the machine.
    """
    needed = {str(Path(__file__).parents[1]), str(Path(__file__).parents[2])}
    needed |= {sys.prefix, sys.base_prefix, *filter(None, [folder])}
    for name, value in os.environ.items():
        if name.startswith(NAMING):
            needed |= {"/" + path.strip("/") for path in re.split(r"[:\s]+", value)}
    needed |= {os.path.realpath(path) for path in needed}
    places = [place for place in TMP if os.path.isdir(place) and not os.path.islink(place)]
    behind = {place: os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in places}
    # By descriptors: these folders, too, may lie in the /tmp that is hidden first.
    folders = {place: _opened(host.path / place.strip("/").replace("/", "-")) for place in places}
    for place in places:
        linux.bind(f"/proc/self/fd/{folders[place]}", place)
        for path in sorted(needed):
            if Path(place) in Path(path).parents:
                old = f"/proc/self/fd/{behind[place]}/{os.path.relpath(path, place)}"
                if os.path.exists(old):
                    Path(path).parent.mkdir(parents=True, exist_ok=True)
                    _bring_back(old, Path(path))
    for fd in (*folders.values(), *behind.values()):
        os.close(fd)
    return places


def _opened(folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def _etc(spec: ClusterSpec, host: Host) -> list[str]:
    """An /etc that the instance may change without changing the machine's, and its hosts file."""
    names = "".join(f"{peer.address} {peer.name}\n" for peer in spec.hosts)
    # Written here, they belong to whoever runs the emulator: an ordinary user could not change
    # those of the machine, which are root's, not even their copies.
    changes = host.path / "etc" / "upper"
    changes.mkdir(parents=True, exist_ok=True)
    (changes / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
    with contextlib.suppress(OSError):  # programs in a container append to it
        shutil.copyfile("/etc/environment", changes / "environment")
    (changes / "environment").touch()
    if _overlay("/etc", host.path / "etc"):
        return ["/etc"]
    linux.bind(changes / "hosts", "/etc/hosts")
    return []


def _image_layer(spec: ClusterSpec, host: Host) -> list[str]:
    """A writable layer over the Python environment, as a container has over its image.

    `pip install -r requirements.txt` on an instance then changes that instance alone.
    Where the file system of the state directory cannot carry an overlay, pip is told to
    install beside the job instead (container.entrypoint reads the variable).
    """
    if _overlay(spec.prefix, host.path / "layer"):
        return [spec.prefix]
    host.env["LOCAL_SAGEMAKER_NO_LAYER"] = "1"
    return []


def _overlay(lower: str, folder: Path) -> bool:
    """Mount a layer, which is kept in `folder`, over another; False where the file system cannot
    carry one."""
    upper, work = folder / "upper", folder / "work"
    upper.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    if ":" in lower + str(upper) or "," in lower + str(upper):  # overlay's own separators
        return False
    for data in (f"{options},userxattr", options):
        with contextlib.suppress(OSError):
            linux.mount("overlay", lower, "overlay", 0, data)
            return True
    return False


def _mount_opt_ml(source: Path) -> None:
    """Show `source` at /opt/ml, also where /opt/ml does not exist and /opt is not ours.

    Then a tmpfs takes /opt's place, with everything that was in /opt bound back into it.
    """
    target = Path("/opt/ml")
    if not target.is_dir():
        # The old /opt stays reachable through a descriptor once the tmpfs covers it.
        names = sorted(os.listdir("/opt")) if os.path.isdir("/opt") else []
        behind = os.open("/opt", os.O_RDONLY | os.O_DIRECTORY)
        linux.mount("tmpfs", "/opt", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
        for name in names:
            _bring_back(f"/proc/self/fd/{behind}/{name}", Path("/opt") / name)
        os.close(behind)
        target.mkdir()
    linux.bind(source, target)


def _bring_back(old: str, new: Path) -> None:
    if os.path.lexists(new):  # with the folder that it is in
        return
    if os.path.islink(old):
        new.symlink_to(os.readlink(old))
        return
    new.mkdir() if os.path.isdir(old) else new.touch()
    linux.bind(old, new)
