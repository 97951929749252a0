"""An instance made of Linux namespaces: own name, own /opt/ml, own eth0, own processes.

    supervisor                    starts the two below and waits
    ├─ relay                      carries connections between the job's network and the host's
    └─ job init                   pid 1 of the job: when it ends, the kernel ends the job
       ├─ algo-1 holder           owns algo-1's mount, network and host name
       │  └─ algo-1 init          pid 1 of the instance; reaps, passes SIGTERM on
       │     └─ train             what a container image would run
       └─ algo-2 holder ...

No root is needed: the job is root of a user namespace of its own, and nothing it mounts
or names is seen outside. When the last process ends, bridge, veths and mounts are gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from functools import partial

from local_sagemaker.cluster import bandwidth, linux, mounts, relay
from local_sagemaker.cluster.event_loop import Instance, Loop, emit, emit_note
from local_sagemaker.cluster.spec import GATEWAY, ClusterSpec, Host

# A bridge left to itself takes its lowest port's hardware address. When that instance ended, the
# others would send what is for the gateway to an address that is gone, for half a minute.
BRIDGE_ADDRESS = "02:00:00:00:00:02"  # a locally administered address

NOBODY = "02:00:00:00:00:01"  # another one, which no interface has

# What job init tells an instance that waits for the others' cables.
GO, GO_SHAPED = b"g", b"s"


def run(spec: ClusterSpec) -> int:
    """Run the job's instances to their end. Called in the supervisor process."""
    ours, theirs = socket.socketpair()
    relay_pid = os.fork()  # before the namespaces: it must stay in the host's network
    if relay_pid == 0:
        theirs.close()
        _child(lambda: relay.serve(ours, spec.port, spec.connectivity.service))
    ours.close()
    linux.new_user_namespace(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        _child(lambda: _job_init(spec, theirs))
    theirs.close()
    _, status = os.waitpid(pid, 0)
    os.kill(relay_pid, signal.SIGKILL)
    return linux.exit_code(status)


def _child(body) -> None:
    """Run `body` in a forked child and leave, whatever happens, without the parent's code."""
    code = 1
    try:
        linux.die_with_parent()
        code = body() or 0
    except BaseException as error:
        emit(event="error", message=f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _job_init(spec: ClusterSpec, relay_socket: socket.socket) -> int:
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)
    linux.batch(
        "ip",
        [
            "link set lo up",
            f"link add br0 address {BRIDGE_ADDRESS} type bridge",
            f"addr add {GATEWAY}/24 dev br0",
            "link set br0 up",
        ],
    )
    relay.open_listeners(relay_socket, spec.connectivity)
    instances = [_start(spec, host) for host in spec.hosts]
    if spec.closed_reason:
        emit_note(spec.hosts[0].name, f"instances do not reach each other: {spec.closed_reason}")
    shaped = False  # whether what each instance sends is to be limited, too
    if spec.bandwidth:
        ports = [host.bridge_port for host in spec.hosts]
        shaped, notes = bandwidth.shape_ports(ports, spec.bandwidth)
        for note in notes:
            emit_note(spec.hosts[0].name, note)
    for instance, go in instances:
        os.write(go, GO_SHAPED if shaped else GO)
        os.close(go)
        emit(event="started", host=instance.name, pid=instance.pid)
    Loop([instance for instance, _ in instances], spec.grace_seconds, spec.together).run()
    return 0


def _close_eth0(spec: ClusterSpec, host: Host) -> None:
    """Keep an instance from the others, as a security group without a rule for its own members.

    AWS drops such packets without an answer, so a connecting client waits. The same here: what is
    for another instance goes to a hardware address that nobody has. In the namespace of `host`.
    """
    if spec.closed_reason:
        others = [other.address for other in spec.hosts if other.name != host.name]
        entry = f"lladdr {NOBODY} dev eth0 nud permanent"
        linux.batch("ip", [f"neigh replace {address} {entry}" for address in others])


def _start(spec: ClusterSpec, host: Host) -> tuple[Instance, int]:
    """Fork one instance and plug it into the bridge; and the pipe on which it waits for the others'
    cables."""
    output, write_end = os.pipe()
    go, go_write = os.pipe()
    ready, ready_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        for fd in (output, go_write, ready):
            os.close(fd)
        _child(lambda: _holder(spec, host, write_end, ready_write, go))
    for fd in (write_end, go, ready_write):
        os.close(fd)
    if os.read(ready, 1) != b"r":
        raise OSError(f"{host.name} could not be made")
    os.close(ready)
    port = host.bridge_port
    linux.batch(
        "ip",
        [
            f"link add {port} type veth peer name eth0 netns {pid}",
            f"link set {port} master br0",
            f"link set {port} up",
        ],
    )
    return Instance(host.name, pid, output, partial(_pass_on, pid)), go_write


def _holder(spec: ClusterSpec, host: Host, output: int, ready: int, go: int) -> int:
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWNET)
    os.write(ready, b"r")
    os.close(ready)
    linux.sethostname(host.name)
    os.sched_setaffinity(0, cores_of(spec.hosts.index(host), len(spec.hosts)))
    mounts.make(spec, host)
    signal_byte = os.read(go, 1)
    if signal_byte not in (GO, GO_SHAPED):
        return 1
    linux.batch(
        "ip", ["link set lo up", f"addr add {host.address}/24 dev eth0", "link set eth0 up"]
    )
    _close_eth0(spec, host)
    if signal_byte == GO_SHAPED and spec.bandwidth:
        bandwidth.shape_eth0(spec.bandwidth)
    linux.unshare(linux.CLONE_NEWPID)  # last: the next child, and no `ip` command, is its pid 1
    pid = os.fork()
    if pid == 0:
        _child(lambda: _instance_init(spec, host, output))
    os.close(output)
    signal.signal(signal.SIGTERM, lambda number, _: _pass_on(pid, number))
    return linux.exit_code(os.waitpid(pid, 0)[1])


def cores_of(index: int, count: int) -> set[int]:
    """The cores of instance `index` of `count`: its own, where there are enough of them.

    Instances on AWS do not take each other's cores. A script that asks how many it may use
    (os.sched_getaffinity, as PyTorch does) then starts no more threads than it has.
    """
    cores = sorted(os.sched_getaffinity(0))
    if count >= len(cores):
        return {cores[index % len(cores)]}
    return set(cores[index * len(cores) // count : (index + 1) * len(cores) // count])


def _pass_on(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _instance_init(spec: ClusterSpec, host: Host, output: int) -> int:
    """Pid 1 of the instance: start the command, reap what dies, end when the command ends."""
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)
    for kernels in ("/proc/sys", "/proc/sysrq-trigger"):  # root's job could write there
        with contextlib.suppress(OSError):
            linux.bind(kernels, kernels)
            linux.read_only(kernels)
    # The script sees this process, and cannot trace it: it has capabilities that the script lacks.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    linux.close_all_but([output])
    pid = os.fork()
    if pid == 0:
        linux.drop_capabilities()
        linux.exec_command(spec.command, host.env, [output, output])
    os.close(output)
    # kill(-1) reaches every process of this namespace but this one.
    signal.signal(signal.SIGTERM, lambda number, _: _pass_on(-1, number))
    while True:
        done, status = os.waitpid(-1, 0)
        if done == pid:
            return linux.exit_code(status)
