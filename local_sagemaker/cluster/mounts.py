"""What an instance of namespaces finds in its file system: its own /opt/ml, /tmp, /etc/hosts."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.spec import ClusterSpec, Host

RUN_TMP = "/run/tmp"


def make(spec: ClusterSpec, host: Host) -> None:
    """Give the instance its own /etc/hosts, /opt/ml, /tmp, /dev/shm and image layer."""
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    hosts_file = host.path / "hosts"
    names = "".join(f"{peer.address} {peer.name}\n" for peer in spec.hosts)
    hosts_file.write_text(f"127.0.0.1 localhost\n{names}")
    linux.bind(hosts_file, "/etc/hosts")
    with contextlib.suppress(OSError):
        linux.mount("tmpfs", "/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV)
    _image_layer(spec, host)
    _mount_opt_ml(host.path / "ml")
    tmp = host.path / "tmp"
    tmp.mkdir(exist_ok=True)
    linux.mount("tmpfs", "/run", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    os.mkdir(RUN_TMP)
    linux.bind(tmp, RUN_TMP)


def _image_layer(spec: ClusterSpec, host: Host) -> None:
    """A writable layer over the Python environment, as a container has over its image.

    `pip install -r requirements.txt` on an instance then changes that instance alone.
    Where the file system of the state directory cannot carry an overlay, pip is told to
    install beside the job instead (image.train reads the variable).
    """
    upper, work = host.path / "layer" / "upper", host.path / "layer" / "work"
    upper.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    options = f"lowerdir={spec.prefix},upperdir={upper},workdir={work}"
    if ":" in spec.prefix + str(upper) or "," in spec.prefix + str(upper):
        host.env["LOCAL_SAGEMAKER_NO_LAYER"] = "1"  # overlay's own separators
        return
    for data in (f"{options},userxattr", options):
        with contextlib.suppress(OSError):
            linux.mount("overlay", spec.prefix, "overlay", 0, data)
            return
    host.env["LOCAL_SAGEMAKER_NO_LAYER"] = "1"


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
    if os.path.islink(old):
        new.symlink_to(os.readlink(old))
        return
    new.mkdir() if os.path.isdir(old) else new.touch()
    linux.bind(old, new)
