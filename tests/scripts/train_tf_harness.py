"""Run a file of scripts/train as somebody does who copied it: alone, in an empty folder."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
from script_harness import LAUNCHER, SCRIPTS, Run, mpirun, needs_horovod, script_env

TRAIN = SCRIPTS / "train"
# A copied script must do without them. Keras imports them where it finds them: a third of its time.
ABSENT = ("matplotlib", "pandas", "sklearn")


def command(script: Path, ranks: int) -> list[str]:
    """How a script starts with so many ranks, by its name."""
    if "horovod" in script.name or "fit" in script.name:
        return [*mpirun(ranks), str(script)]
    workers = ["--workers", str(ranks)]
    if "multiworker" in script.name:
        return [sys.executable, str(LAUNCHER), *workers, str(script)]
    if "_ps" in script.name:
        return [sys.executable, str(LAUNCHER), *workers, "--ps", "1", str(script)]
    devices = ["--devices", str(ranks)] if "mirrored" in script.name else []
    return [sys.executable, str(script), *devices]


class Alone:
    """A copy of one script in an empty folder, where its model and checkpoints go, too.

    Args:
        folder: to make.
        name: of the script.
        digits: the folder of the two channels.
        changes: texts to replace, each by another: to break the copy on purpose.
    """

    def __init__(self, folder: Path, name: str, digits: Path, changes: dict | None = None):
        if "horovod" in name or "fit" in name:
            needs_horovod()
        self.folder, self.digits = folder, digits
        folder.mkdir(parents=True)
        self.script = Path(shutil.copy(TRAIN / name, folder))
        text = self.script.read_text()
        for before, after in (changes or {}).items():
            assert text.count(before) == 1, f"{before!r} stands {text.count(before)} times"
            text = text.replace(before, after)
        self.script.write_text(text)
        self.absent = folder.parent / "absent"
        self.absent.mkdir(exist_ok=True)
        for module in ABSENT:
            (self.absent / f"{module}.py").write_text(f"raise ModuleNotFoundError({module!r})\n")

    def start(self, ranks: int, *arguments) -> subprocess.Popen:
        """Start it; its stdout is a pipe."""
        env = script_env(self.digits, self.folder / "model")
        env["PYTHONPATH"] = str(self.absent)  # and nothing of this project
        with open(self.folder / "stderr", "w") as stderr:
            return subprocess.Popen(
                [*command(self.script, ranks), *map(str, arguments)],
                cwd=self.folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def run(self, ranks: int, *arguments, check: bool = True) -> Run:
        """Run it to its end."""
        process = self.start(ranks, *arguments)
        try:
            stdout, _ = process.communicate(timeout=200)
        finally:
            process.kill()
        stderr = (self.folder / "stderr").read_text()
        assert not check or process.returncode == 0, stdout[-2000:] + stderr[-4000:]
        return Run(process.returncode, stdout, stderr)

    def run_until_step(self, step: int, ranks: int, *arguments) -> None:
        """Run it, and end it when it has done so many steps. No process is left."""
        process = self.start(ranks, *arguments, "--log-every", 1)
        for line in process.stdout:
            if f'"step": {step},' in line:
                break
        else:
            raise AssertionError((self.folder / "stderr").read_text()[-4000:])
        # mpirun ends its ranks when it is told to end; nobody else gets the chance.
        process.send_signal(signal.SIGTERM if ranks > 1 and is_mpi(process) else signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 60
        while any(str(self.script) in word for one in psutil.process_iter() for word in words(one)):
            assert time.monotonic() < deadline, "a process outlived its launcher"
            time.sleep(0.1)

    def weights(self) -> dict[str, np.ndarray]:
        """The weights of the SavedModel, by name."""
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        saved = tf.train.load_checkpoint(str(self.folder / "model" / "1" / "variables/variables"))
        names = [name for name in saved.get_variable_to_shape_map() if "layer_with" in name]
        return {name: saved.get_tensor(name) for name in names}


def is_mpi(process: subprocess.Popen) -> bool:
    return "mpirun" in process.args[0]


def words(process: psutil.Process) -> list[str]:
    """The command line of a process; none if it has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def difference(one: dict, other: dict) -> float:
    """The largest absolute difference of any weight."""
    assert one.keys() == other.keys() and len(one) == 8
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)
