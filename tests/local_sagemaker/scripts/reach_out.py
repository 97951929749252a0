"""Tries what an instance must not do to the machine that it runs on, and says what worked."""

import ctypes
import json
import os
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request

SECRETS = json.loads(os.environ["TARGETS"])


def tries(action) -> bool:
    try:
        return action() is not False
    except (OSError, subprocess.SubprocessError):
        return False


def write(path: str) -> None:
    with open(path, "a") as stream:
        stream.write("a job was here\n")


def read(path: str) -> None:
    with open(path) as stream:
        stream.read()


def through_proxy(port: int) -> bool:
    proxy = os.environ.get("PIP_PROXY", "http://10.88.0.1:3128").partition("//")[2]
    host, _, number = proxy.partition(":")
    with socket.create_connection((host, int(number)), timeout=10) as connection:
        connection.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        return b" 200 " in connection.recv(100)


def reaches_the_endpoint() -> None:
    try:
        urllib.request.urlopen("http://10.88.0.1:4566/", timeout=10)
    except urllib.error.HTTPError:  # it answers
        return


def attaches_to_pid_1() -> bool:
    attached = ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0  # PTRACE_ATTACH
    return attached and os.waitpid(1, 0x40000000) is not None  # __WALL


def opens_pipe(number: int, how: int) -> bool:
    """Whether what pid 1 reads, or writes, is one of the supervisor's pipes, and opens."""
    fd = os.open(f"/proc/1/fd/{number}", how | os.O_NONBLOCK)
    return stat.S_ISFIFO(os.fstat(fd).st_mode)


umount = ctypes.CDLL(None).umount2
found = {
    "writes to the home directory": tries(lambda: write(SECRETS["home"] + "/.bashrc-of-a-test")),
    "lists the endpoint's state": tries(lambda: bool(os.listdir(SECRETS["state"]))),
    "reads the endpoint's key": tries(lambda: read(SECRETS["state"] + "/credentials.json")),
    "uncovers the state": umount(SECRETS["state"].encode(), 2) == 0,
    "mounts": tries(lambda: subprocess.run(["mount", "-t", "tmpfs", "x", "/mnt"], check=True)),
    "writes to /proc/sys": tries(lambda: write("/proc/sys/kernel/hostname")),
    "attaches to its instance's pid 1": tries(attaches_to_pid_1),
    "reads what is for the supervisor": tries(lambda: opens_pipe(0, os.O_RDONLY)),
    "writes events of its own": tries(lambda: opens_pipe(1, os.O_WRONLY)),
    "reads the environment of pid 1": tries(lambda: read("/proc/1/environ")),
    "writes into its own /etc": tries(lambda: write("/etc/environment")),
    "writes to its temporary directory": tries(lambda: write(os.environ["TMPDIR"] + "/x")),
    "writes to its home": tries(lambda: write(os.path.expanduser("~/x"))),
    "reaches this machine's loopback through the proxy": tries(
        lambda: through_proxy(SECRETS["port"])
    ),
    "reaches the endpoint": tries(reaches_the_endpoint),
}
print("TRIED", json.dumps(found))
sys.stdout.flush()
