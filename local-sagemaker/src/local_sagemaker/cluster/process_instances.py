"""An instance made of plain processes, where namespaces are not to be had.

Variables and directories are those of an instance. What is lost: own addresses and host
names (everybody is on loopback), and the shaping of links.
"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial

import psutil

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.event_loop import Instance, Loop, emit, emit_note
from local_sagemaker.cluster.orphans import kill, kill_orphans, members
from local_sagemaker.cluster.spec import JOB_ENV, ClusterSpec, Host

OPEN = "instances are plain processes here and reach each other; on AWS they would not"


def run(spec: ClusterSpec) -> int:
    """Run the job's instances to their end. Called in the supervisor process."""
    linux.adopt_orphans()
    if spec.closed_reason:
        emit_note(spec.hosts[0].name, f"{OPEN}: {spec.closed_reason}")
    instances = [_start(spec, host) for host in spec.hosts]
    for instance in instances:
        emit(event="started", host=instance.name, pid=instance.pid)
    try:
        Loop(instances, spec.grace_seconds, spec.together).run()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kill(psutil.Process().children(recursive=True))
        kill_orphans(spec.hosts[0].env[JOB_ENV])
    return 0


def _start(spec: ClusterSpec, host: Host) -> Instance:
    """Start the leader of a session, whose descendants are the instance."""
    read_end, output = None, host.output
    if not output:
        read_end, write_end = os.pipe()
        output = [write_end, write_end]
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(OSError, AttributeError):  # prctl is Linux's
            linux.die_with_parent(parent)
        command = host.command or spec.command
        linux.exec_command(command, host.env, output, host.folder, host.descriptors)
    for number in {*output, *host.descriptors}:
        os.close(number)  # so that a reader sees the end when the command has ended
    return Instance(host.name, pid, read_end, partial(_signal, host, pid))


def _signal(host: Host, pid: int, number: int) -> None:
    processes = set(members(host.env[JOB_ENV], host.name))
    with contextlib.suppress(psutil.NoSuchProcess):
        processes |= {psutil.Process(pid), *psutil.Process(pid).children(True)}
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # one that is stopped cannot end
