"""A disk that is really full: data_prep says so and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.namespaces
@pytest.mark.parametrize("kilobytes", [0, 20])
def test_data_prep_on_a_full_disk_leaves_nothing(tmp_path, kilobytes):
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}"
    fill = f"head -c {64 - kilobytes}k /dev/zero > {tmp_path}/filler"
    program = f"{sys.executable} -m data_prep digits --out {tmp_path}/digits; echo $?"
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
            f"{mount} && {fill} && {{ {program}; ls -A {tmp_path}; }}",
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "with enough free space" in done.stderr and "--out FOLDER" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["1", "filler"]
