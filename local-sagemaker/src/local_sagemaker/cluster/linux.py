"""The few Linux calls that Python 3.11's `os` lacks, and the commands `ip` and `tc`."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

# Values from <linux/sched.h>, <linux/mount.h> and <linux/prctl.h>.
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
SYS_MOUNT_SETATTR = 442  # the same number on every architecture; Linux 5.12
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY = 0x1
# What a script may do as root of its instance: chown, override and change modes, kill, become
# another user, ports under 1024, ping, chroot, file capabilities. That is what Docker leaves to a
# container, but for devices. Without CAP_SYS_PTRACE it reads and changes no process that has more.
CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 31})
PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
MAX_FILES = 65536  # more than a supervisor ever has open
NOT_STARTED = 127  # a shell's status for a command that cannot be started
LIBC = ctypes.CDLL(None, use_errno=True)
# Searched after PATH: an ordinary user's PATH on Debian lacks them, and `tc` is there.
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process (for CLONE_NEWPID: its next children) into new namespaces."""
    _check(LIBC.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: Path | str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2). Raises OSError with the target in its message."""
    result = LIBC.mount(
        source.encode(),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    _check(result, f"mount {source} on {target}")


def bind(source: Path | str, target: Path | str) -> None:
    """Show `source` at `target` too, in this mount namespace."""
    mount(str(source), target, flags=MS_BIND | MS_REC)


def read_only(target: Path | str, recursive: bool = False, undo: bool = False) -> None:
    """Make a mount read-only (undo: writable) in this mount namespace. Raises OSError (ENOSYS
    before Linux 5.12)."""
    mask = MOUNT_ATTR_RDONLY
    attributes = (ctypes.c_uint64 * 4)(0 if undo else mask, mask if undo else 0, 0, 0)
    result = LIBC.syscall(
        ctypes.c_long(SYS_MOUNT_SETATTR),
        ctypes.c_int(AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(AT_RECURSIVE if recursive else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _check(result, f"make {target} {'writable' if undo else 'read-only'}")


def drop_capabilities() -> None:
    """What this process starts has no more than CAPABILITIES: it can neither mount nor change its
    network."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in set(range(last + 1)) - CAPABILITIES:
        _check(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl")


def sethostname(name: str) -> None:
    raw = name.encode()
    _check(LIBC.sethostname(raw, ctypes.c_size_t(len(raw))), "sethostname")


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel to kill this process when the thread that forked it ends.

    parent: the process that forked, where it is seen from here: if it has ended already, nothing
    will kill this one, so it ends at once.
    """
    _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if parent is not None and os.getppid() != parent:
        os._exit(NOT_STARTED)


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans, so that it can end them."""
    with contextlib.suppress(OSError, AttributeError):
        _check(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def new_user_namespace(extra_flags: int = 0) -> None:
    """Become root of a new user namespace.

    An ordinary user is mapped to root. Real root keeps every user, so that files of
    other owners stay readable; where the kernel refuses user namespaces to root, the
    other namespaces are made without one.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        unshare(CLONE_NEWUSER | extra_flags)
    except OSError as error:
        if uid == 0 and error.errno in (errno.EPERM, errno.ENOSPC, errno.EINVAL):
            unshare(extra_flags)
            return
        raise
    if uid == 0:
        try:
            Path("/proc/self/uid_map").write_text("0 0 4294967295")
            Path("/proc/self/gid_map").write_text("0 0 4294967295")
            return
        except OSError:  # root of a container that holds fewer ids
            pass
    with contextlib.suppress(FileNotFoundError):
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def system_command(name: str) -> str | None:
    """The path of a command such as `tc`, even where PATH lacks the system folders.

    None where the command is not installed.
    """
    folders = [os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS]
    return shutil.which(name, path=os.pathsep.join(folders))


def missing(name: str) -> str:
    """What to say where `ip` or `tc` is not installed."""
    return f"the command `{name}` is missing: install the package iproute2"


def batch(name: str, lines: list[str]) -> None:
    """Run commands of `ip` or `tc`, one a line. Raises OSError with what it said."""
    program = system_command(name)
    if program is None:
        raise FileNotFoundError(missing(name))
    done = subprocess.run(
        [program, "-batch", "-"], input="\n".join(lines), text=True, capture_output=True
    )
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise OSError(output[0] if output else f"{name} gave no reason")


def exit_code(wait_status: int) -> int:
    """A shell's exit code for a wait status: 128 + n for signal n."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def close_all_but(descriptors: Sequence[int]) -> None:
    """Close what this process has open, but standard input, output, error and `descriptors`."""
    start = 3
    for number in [*sorted(set(descriptors)), MAX_FILES]:
        os.closerange(start, number)
        start = max(start, number + 1)


def exec_command(
    command: list[str],
    env: dict[str, str],
    output: Sequence[int],
    folder: str | None = None,
    descriptors: Sequence[int] = (),
) -> NoReturn:
    """Become `command`, with nothing open but /dev/null, its output and `descriptors`.

    output: what takes its standard output, and its standard error.
    """
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output[0], 1)
        os.dup2(output[1], 2)
        close_all_but(descriptors)
        if folder:
            os.chdir(folder)
        os.execvpe(command[0], command, env)
    except BaseException as error:
        os.write(2, f"{command[0]} could not be started: {error}\n".encode())
    os._exit(NOT_STARTED)
