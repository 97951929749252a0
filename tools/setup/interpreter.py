"""Find a Python that the locked versions fit."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tools.setup.shell import SetupError, output_of

VERSIONS = ("3.11", "3.12")  # the first is the one that the kit is tested with

# Run by a candidate itself: a pyenv shim, for example, exists and yet fails when it is run.
PROBE = """
import json, os, platform, struct, sys, sysconfig
try:
    import ensurepip, venv
    can_make_venv = True
except ImportError:
    can_make_venv = False
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "full_version": platform.python_version(),
    "executable": sys.executable,
    "can_make_venv": can_make_venv,
    "bits": 8 * struct.calcsize("P"),
    "tag": "cp%d%d" % sys.version_info[:2],
    "platform": sysconfig.get_platform().replace("-", "_").replace(".", "_"),
    "libc": "".join(platform.libc_ver()),
    "include": sysconfig.get_paths()["include"],
    "cc": os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc",
}))
"""


def probe(executable: str) -> dict | None:
    """What a Python says about itself, or None where it does not run."""
    text = output_of([executable, "-c", PROBE], timeout=20)
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def candidates() -> list[str]:
    """Every place where a fitting Python may be, the preferred version first."""
    folders = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f]
    home = Path.home()
    found = []
    for version in VERSIONS:
        found += [os.path.join(folder, "python" + version) for folder in folders]
        for pattern in (
            f".pyenv/versions/{version}.*/bin/python{version}",
            f".local/share/uv/python/cpython-{version}.*/bin/python{version}",
        ):
            found += [str(path) for path in sorted(home.glob(pattern), reverse=True)]
    found += [os.path.join(folder, "python3") for folder in folders]
    return [path for path in dict.fromkeys(found) if os.access(path, os.X_OK)]


def fits(facts: dict | None) -> bool:
    return facts is not None and facts["version"] in VERSIONS and facts["bits"] == 64


def find_python(asked: str | None) -> str:
    """The path of a Python that fits and can make a virtual environment.

    `asked` is what the user gave as PYTHON=...; nothing else is tried then. Raises SetupError.
    """
    without_venv = None
    for path in [asked] if asked else candidates():
        facts = probe(path)
        if facts is None or not fits(facts):
            continue
        if facts["can_make_venv"]:
            return path
        without_venv = without_venv or facts
    if without_venv:
        version = without_venv["version"]
        raise SetupError(
            f"{without_venv['executable']} fits, but its venv module is incomplete.\n"
            f"Install it (Debian, Ubuntu: sudo apt-get install python{version}-venv), "
            "then run make setup again."
        )
    if asked:
        facts = probe(asked)
        is_what = f"is Python {facts['full_version']}" if facts else "does not run"
        raise SetupError(
            f"PYTHON={asked} {is_what}; Python {' or '.join(VERSIONS)} (64 bit) is needed."
        )
    raise SetupError(
        f"No Python {' or '.join(VERSIONS)} (64 bit) was found.\n"
        "Install one, for example:\n"
        "  Debian, Ubuntu:  sudo apt-get install python3.11 python3.11-venv python3.11-dev\n"
        "  macOS:           brew install python@3.11\n"
        "  anywhere:        uv python install 3.11, or pyenv install 3.11\n"
        "If it is outside PATH: make setup PYTHON=/path/to/python3.11"
    )
