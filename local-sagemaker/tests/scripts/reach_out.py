"""Tries what an instance must not do to the machine that it runs on, and says what worked."""

import ctypes
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

TARGETS = json.loads(os.environ["TARGETS"])


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


def connects(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def through_proxy(target: str) -> bool:
    """Whether the proxy is willing: 502 says that it tried."""
    proxy = os.environ.get("PIP_PROXY", "http://10.88.0.1:3128").partition("//")[2]
    host, _, number = proxy.partition(":")
    with socket.create_connection((host, int(number)), timeout=10) as connection:
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        return b" 403 " not in connection.recv(100)


def reaches_the_emulator() -> None:
    try:
        urllib.request.urlopen(os.environ.get("AWS_ENDPOINT_URL", ""), timeout=10)
    except urllib.error.HTTPError:  # it answers
        return
    except ValueError as error:
        raise OSError from error


def takes_all_cores() -> bool:
    os.sched_setaffinity(0, range(os.cpu_count()))
    return len(os.sched_getaffinity(0)) == TARGETS["cores"]


def attaches_to_pid_1() -> bool:
    attached = ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0  # PTRACE_ATTACH
    return attached and os.waitpid(1, 0x40000000) is not None  # __WALL


def opens_pipe(number: int, how: int) -> bool:
    """Whether what pid 1 reads, or writes, is one of the supervisor's pipes, and opens."""
    fd = os.open(f"/proc/1/fd/{number}", how | os.O_NONBLOCK)
    return stat.S_ISFIFO(os.fstat(fd).st_mode)


def uncovers(path: str) -> bool:
    return ctypes.CDLL(None).umount2(path.encode(), 2) == 0


home, state, port = TARGETS["home"], TARGETS["state"], TARGETS["port"]
actions = {
    "writes to the home directory": lambda: write(home),
    "reads the owner's files": lambda: read(TARGETS["file"]),
    "lists the emulator's state": lambda: bool(os.listdir(state)),
    "reads the emulator's key": lambda: read(state + "/credentials.json"),
    "connects to a socket in /tmp": lambda: connects(TARGETS["/tmp"]),
    "connects to a socket in /var/tmp": lambda: connects(TARGETS["/var/tmp"]),
    "connects to a socket elsewhere": lambda: connects(TARGETS["socket"]),
    "connects to a service on loopback": lambda: socket.create_connection(("127.0.0.1", port)),
    "reaches the emulator": reaches_the_emulator,
    "takes all cores": takes_all_cores,
    "writes to /tmp": lambda: write(f"/tmp/{TARGETS['name']}"),
    "writes to /var/tmp": lambda: write(f"/var/tmp/{TARGETS['name']}"),
    "writes to its temporary directory": lambda: tempfile.mkstemp(),
    "leaves a process": lambda: subprocess.Popen(
        ["env", "-i", "setsid", "sleep", TARGETS["sleep"]], stdout=-3, stderr=-3
    ),
}
if TARGETS["inside"]:  # elsewhere these would be done to the machine itself
    actions |= {
        "uncovers the state": lambda: uncovers(state),
        "uncovers /tmp": lambda: uncovers("/tmp"),
        "mounts": lambda: subprocess.run(
            ["mount", "-t", "tmpfs", "x", "/mnt"], check=True, stderr=-3
        ),
        "changes its link": lambda: subprocess.run(
            ["ip", "link", "set", "eth0", "mtu", "1000"],
            check=True,
            stderr=-3,
            env=os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"},
        ),
        "writes to /proc/sys": lambda: write("/proc/sys/kernel/hostname"),
        "attaches to its instance's pid 1": attaches_to_pid_1,
        "reads what is for the supervisor": lambda: opens_pipe(0, os.O_RDONLY),
        "writes events of its own": lambda: opens_pipe(1, os.O_WRONLY),
        "reads the environment of pid 1": lambda: read("/proc/1/environ"),
        "sees where pid 1 is": lambda: os.listdir("/proc/1/cwd"),
        "writes into its own /etc": lambda: write("/etc/environment"),
        "writes to its home": lambda: write(os.path.expanduser("~/x")),
        "reaches loopback through the proxy": lambda: through_proxy(f"127.0.0.1:{port}"),
        "reaches the local network through the proxy": lambda: through_proxy("10.255.255.1:443"),
        "reaches any port through the proxy": lambda: through_proxy("1.1.1.1:53"),
    }
print("TRIED", json.dumps([name for name, action in actions.items() if tries(action)]))
sys.stdout.flush()
