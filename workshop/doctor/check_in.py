"""The code by which a participant tells the instructor what `workshop class check-in` found.

Sixteen letters and digits, such as ABCD-EFGH-IJKL-MNOP, hold the kit's version and commit, the
platform, the level of each need, and a checksum. No name and nothing else of the machine.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import importlib.metadata
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from workshop.doctor.installed import FAIL, OK, WARN

LEVELS = (OK, WARN, FAIL)
# In this order a code holds their levels. Another list makes other checksums: an old code is
# refused, not misread. Three bytes have room for 15.
NEEDS = ("Python", "packages", "C++ compiler", "Horovod", "mpirun", "iproute2", "namespaces")
NEEDS += ("tc tbf", "tc netem", "disk", "memory", "cores", "AWS CLI")
NEEDS += ("emulator", "JupyterLab")
SYSTEMS = ("other", "Linux", "WSL", "macOS")
MACHINES = ("other", "x86_64", "arm64")
DISTRIBUTION = "sagemaker-data-parallel-workshop"
# Also without the hyphens, or with what a mail program makes of them.
CODE = re.compile(r"\b[A-Z2-7]{4}(?:[-\u2010-\u2015]?[A-Z2-7]{4}){3}\b", re.IGNORECASE)


class BadCode(ValueError):
    """No code of this kit; the message says what may be the reason."""


@dataclass(frozen=True)
class CheckIn:
    """What a code says. commit: its first four hexadecimal digits, "0000" where it is unknown.

    python: the minor version, 11 for Python 3.11. levels: need -> OK, WARN or FAIL.
    """

    version: str
    commit: str
    system: str
    machine: str
    python: int
    levels: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether no need failed."""
        return FAIL not in self.levels.values()


def here(levels: list[str], commit: str) -> CheckIn:
    """This machine's. levels: of NEEDS, in that order."""
    system = {"Linux": "Linux", "Darwin": "macOS"}.get(platform.system(), "other")
    if system == "Linux" and "microsoft" in platform.release().lower():
        system = "WSL"
    machine = {"aarch64": "arm64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return CheckIn(
        importlib.metadata.version(DISTRIBUTION),
        commit[:4] if re.match(r"[0-9a-f]{7}", commit) else "0000",
        system,
        machine if machine in MACHINES else "other",
        sys.version_info.minor,
        dict(zip(NEEDS, levels, strict=True)),
    )


def encode(found: CheckIn) -> str:
    """The code. Raises ValueError for a version whose numbers do not fit: above 15.63.63."""
    major, minor, patch = map(int, found.version.split(".")[:3])
    if major > 15 or max(minor, patch) > 63:
        raise ValueError(f"Version {found.version} does not fit into a code.")
    place = SYSTEMS.index(found.system) << 6 | MACHINES.index(found.machine) << 4
    number = 0
    for need in NEEDS:
        number = 3 * number + LEVELS.index(found.levels[need])
    body = (
        (major << 12 | minor << 6 | patch).to_bytes(2)
        + bytes.fromhex(found.commit)
        + (place | found.python % 16).to_bytes(1)
        + number.to_bytes(3)
    )
    letters = base64.b32encode(body + _checksum(body)).decode()
    return "-".join(letters[at : at + 4] for at in range(0, 16, 4))


def decode(code: str) -> CheckIn:
    """What a code says; small letters are read, too. Raises BadCode."""
    if not CODE.fullmatch(code.strip()):
        raise BadCode(
            f"{code!r} is not a check-in code: four groups of four letters or digits were expected"
        )
    raw = base64.b32decode(re.sub(r"[^A-Z2-7]", "", code.upper()))
    body, number = raw[:8], int.from_bytes(raw[5:8])
    if raw[8:] != _checksum(body) or number >= 3 ** len(NEEDS):
        raise BadCode(f"{code}: mistyped, or made by another version of the kit")
    version, place = int.from_bytes(raw[:2]), raw[4]
    digits = []
    for _ in NEEDS:
        number, level = divmod(number, 3)
        digits.append(LEVELS[level])
    return CheckIn(
        f"{version >> 12}.{version >> 6 & 63}.{version & 63}",
        raw[2:4].hex(),
        SYSTEMS[place >> 6],
        MACHINES[place >> 4 & 3] if place >> 4 & 3 < len(MACHINES) else "other",
        place & 15,
        dict(zip(NEEDS, reversed(digits), strict=True)),
    )


def codes_in(text: str) -> list[tuple[str, str]]:
    """(who, code) for each code in a text; who is what else its line says."""
    return [
        (line.replace(code, "").strip(" \t:,;-|") or "no name", code)
        for line in text.splitlines()
        for code in CODE.findall(line)
        if _looks_typed(code)
    ]


def _looks_typed(code: str) -> bool:
    """Whether it is meant as a code, right or mistyped, and is no word of sixteen letters."""
    if code.isupper() or not code.isalnum():
        return True
    with contextlib.suppress(BadCode):
        return bool(decode(code))
    return False


def commit_of(root: Path) -> str:
    """The commit of the kit in `root`, without asking git; "" where there is none."""
    try:
        head = (root / ".git" / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        return head if name == head else (root / ".git" / name).read_text().strip()
    except OSError:
        return ""


def _checksum(body: bytes) -> bytes:
    return binascii.crc_hqx(body, binascii.crc_hqx(",".join(NEEDS).encode(), 0)).to_bytes(2)
