"""An instance made of plain processes, where namespaces are not to be had.

Variables and directories are those of an instance. What is lost: own addresses and host
names (everybody is on loopback), and the shaping of links.
"""

from __future__ import annotations

import os
import signal

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.loop import Loop, emit, note
from local_sagemaker.cluster.namespace_instances import exec_command
from local_sagemaker.cluster.orphans import JOB_ENV, kill_orphans, members
from local_sagemaker.cluster.spec import ClusterSpec, Host

WIDE = "links are wide: instances are plain processes here and share the loopback"
OPEN = "instances are plain processes here and reach each other; on AWS they would not"


class ProcessInstance:
    """An instance: the leader of a session, whose descendants are the instance."""

    def __init__(self, host: Host, pid: int, output: int) -> None:
        self.mark, self.name, self.pid, self.output = host.env[JOB_ENV], host.name, pid, output

    def signal(self, number: int) -> None:
        for process in members(self.mark, self.name):
            process.send_signal(number)


def run(spec: ClusterSpec) -> int:
    """Run the job's instances to their end. Called in the supervisor process."""
    linux.adopt_orphans()
    if spec.links and len(spec.hosts) > 1:
        note(spec.hosts[0].name, WIDE)
    if spec.closed and len(spec.hosts) > 1:
        note(spec.hosts[0].name, f"{OPEN}: {spec.closed}")
    instances = [_start(spec, host) for host in spec.hosts]
    for instance in instances:
        emit(event="started", host=instance.name)
    try:
        Loop(instances, spec.grace_seconds).run()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kill_orphans(spec.hosts[0].env[JOB_ENV])
    return 0


def _start(spec: ClusterSpec, host: Host) -> ProcessInstance:
    output, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        exec_command(spec.command, host.env, write_end)
    os.close(write_end)
    return ProcessInstance(host, pid, output)
