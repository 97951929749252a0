"""Reads a record's folder, and asks the ranks that live to write what they know now.

The files are of workshop.launch.recorder. No process is harmed: it is asked by a file, and by a
signal only if it catches that signal.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pickle
import re
import signal
import struct
import sys
import time
from pathlib import Path

import psutil

from workshop.diagnosis.evidence import Collective, Evidence, NoEvidence, Rank, is_script
from workshop.launch.processes import Line
from workshop.launch.recording import RECORDS

ANSWER_SECONDS = 2.5
STACK_SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None  # as the recorder's


def newest_record() -> Path:
    """The folder of the last ranks that were started here. Raises NoEvidence."""
    records = sorted(RECORDS.glob("*/start.json"))
    if not records:
        raise NoEvidence(
            "No ranks have been started here yet. `workshop record COMMAND` starts some, and "
            "records them; so does all that the lessons start."
        )
    return records[-1].parent


def record_of_process(pid: int) -> Path:
    """The record to which a process belongs. Raises NoEvidence."""
    try:
        folder = psutil.Process(pid).environ().get("WORKSHOP_RECORD", "")
    except psutil.NoSuchProcess:
        raise NoEvidence(f"There is no process {pid}.") from None
    except psutil.AccessDenied:
        raise NoEvidence(
            f"Process {pid} belongs to another user: ask as that user, or as root."
        ) from None
    if not folder:
        raise NoEvidence(
            f"Process {pid} was started without a recorder. Start it with `workshop record "
            "COMMAND`; for this one, `py-spy dump --pid` (package py-spy) shows its stack."
        )
    return Path(folder)


def read_record(folder: Path, name: str = "") -> Evidence:
    """Ask the ranks that live, and read what all have left. Raises NoEvidence."""
    try:
        if not folder.is_dir():
            raise NoEvidence(f"{folder} is no folder of recorded ranks.")
        silent = _ask(folder)
        notes = sorted(folder.glob("*.json"))
        log = folder / "log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    except PermissionError:
        raise NoEvidence(f"{folder} belongs to another user: ask as that user.") from None
    evidence = Evidence(name or folder.name, lines=[_log_line(line) for line in lines])
    evidence.command = _command(folder)
    newest: dict[str, Rank] = {}
    for path in notes:
        content = _json(path, evidence.problems)
        if path.stem == "end":
            evidence.statuses = content.get("statuses", [])
        elif content.get("rank") is not None or content.get("task"):
            number = content.get("rank")
            rank = Rank(-1 if number is None else number, content)
            rank.alive = bool(_owner(path))
            rank.silent = rank.alive and path in silent
            _read_dump(path.with_suffix(".fr"), rank, evidence.problems)
            _read_stack(path.with_suffix(".stack"), rank)
            newest[rank.name] = max(newest.get(rank.name, rank), rank, key=_preference)
    everybody = sorted(newest.values(), key=lambda rank: (rank.number, rank.name))
    evidence.ranks = [rank for rank in everybody if rank.number >= 0]
    evidence.tasks = [rank for rank in everybody if rank.number < 0]
    evidence.running = any(rank.alive for rank in everybody) or _is_starting(folder)
    if not everybody and not evidence.lines:
        raise NoEvidence(f"{folder.name} holds no rank, and no line of a log: nothing to read.")
    return evidence


def _command(folder: Path) -> str:
    """What was started, where and when, so that nobody takes another's record for theirs."""
    start = _json(folder / "start.json", [])
    if not start.get("commands") or "folder" not in start:
        return ""
    program, *words = start["commands"][0]
    when = time.strftime("%H:%M:%S", time.localtime(start["time"]))
    return f"started at {when} in {start['folder']}: {Path(program).name} {' '.join(words)}"[:200]


def _is_starting(folder: Path) -> bool:
    """Whether no command has ended, and the process that started them lives."""
    start = _json(folder / "start.json", [])
    with contextlib.suppress(psutil.Error, KeyError):
        process = psutil.Process(start["pid"])
        return not (folder / "end.json").exists() and process.create_time() <= start["time"]
    return False


def _preference(rank: Rank) -> tuple:
    """Launchers that restart ranks leave several of one number; so do a rank's own children."""
    return bool(rank.note.get("joined")), rank.note["began"]


def _ask(folder: Path) -> set[Path]:
    """Let all that live write a new note. The notes of those that did not in time."""
    waiting = {path for path in folder.glob("*.json") if _owner(path)}
    if not waiting:
        return set()
    (folder / "ask").touch()
    began, deadline = time.time(), time.monotonic() + ANSWER_SECONDS
    while waiting and time.monotonic() < deadline:
        time.sleep(0.05)
        waiting = {path for path in waiting if path.stat().st_mtime < began and _owner(path)}
    for path in waiting:
        _ask_by_signal(_owner(path))
    if waiting:
        time.sleep(0.2)  # for the stacks
    return waiting


def _ask_by_signal(pid: int) -> None:
    """Let faulthandler write the stack, if the process catches the signal for that."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = int(next(line for line in status if line.startswith("SigCgt:")).split()[1], 16)
        if pid and STACK_SIGNAL and caught >> (STACK_SIGNAL - 1) & 1:
            os.kill(pid, STACK_SIGNAL)


def _owner(note: Path) -> int:
    """The id of the process that wrote a note, if it lives; else 0.

    A process holds a lock of its stack file for its whole life, and the kernel says whose it is: as
    this process sees it, also of one in another namespace. An id alone may have a new owner.
    """
    linux = sys.platform == "linux"
    layout, kind, pid = ("hhqqi0q", 0, 4) if linux else ("qqihh", 3, 2)
    question = (fcntl.F_WRLCK, 0, 0, 0, 0) if linux else (0, 0, 0, fcntl.F_WRLCK, 0)
    try:
        with note.with_suffix(".stack").open("rb") as file:
            reply = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(layout, *question))
    except OSError:
        return 0
    lock = struct.unpack(layout, reply)
    return 0 if lock[kind] == fcntl.F_UNLCK else lock[pid]


def _json(path: Path, problems: list[str]) -> dict:
    try:
        content = json.loads(path.read_text())
        return content if isinstance(content, dict) else {}
    except (OSError, ValueError) as error:
        problems.append(f"{path.name} cannot be read: {error}")
        return {}


def _log_line(line: str) -> Line:
    number, _, text = line.partition("\t")
    return Line(int(number) if number.isdigit() else None, text)


def _read_stack(path: Path, rank: Rank) -> None:
    """Take over what faulthandler wrote after the note, on a signal: the main thread's stack."""
    if not path.exists() or path.stat().st_mtime < rank.note["time"]:
        return
    text = path.read_text(errors="replace")
    threads = re.split(r"\n\n|(?=Current thread)", text)
    frames = [re.findall(r'File "(.+)", line (\d+) in (.+)', thread) for thread in threads]
    main = [
        stack
        for stack in frames
        if stack and not any("workshop_recorder" in f for f, _, _ in stack)
    ]
    if main:
        rank.note["stack"] = [(file, int(line), name) for file, line, name in main[-1]]
        rank.aborted = "Fatal Python error" in text


class _Plain(pickle.Unpickler):
    """Reads numbers, texts and their containers; anything else would run code."""

    def find_class(self, module: str, name: str):
        raise pickle.UnpicklingError(f"a dump has no {module}.{name}")


def _read_dump(path: Path, rank: Rank, problems: list[str]) -> None:
    """Add the collectives of a flight recorder's dump to a rank."""
    if not path.exists():
        return
    try:
        dump = _Plain(io.BytesIO(path.read_bytes())).load()
        rank.collectives = [_collective(entry) for entry in dump["entries"]]
    except Exception as error:  # whatever a damaged pickle does
        kind = type(error).__name__
        problems.append(f"rank {rank.number}: its flight recorder's dump is damaged ({kind})")


def _collective(entry: dict) -> Collective:
    frames = [(frame["filename"], frame["line"], frame["name"]) for frame in entry["frames"]]
    sizes = " + ".join("x".join(map(str, size)) or "1" for size in entry["input_sizes"])
    return Collective(
        entry["process_group"][0],
        entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"],
        entry["profiling_name"].rpartition(":")[2],
        sizes,
        "/".join(dict.fromkeys(entry["input_dtypes"])),
        next(filter(is_script, frames), ("", 0, "")),
        entry["time_created_ns"] / 1e9,
        bool(entry["retired"]) or entry["state"] == "completed",
        tuple(frames),
    )
