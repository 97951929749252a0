"""workshop lab: JupyterLab on the lessons, with the emulator up."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
from jupyter_core.paths import jupyter_runtime_dir

from local_sagemaker import EmulatorError
from workshop.jobs import local_server
from workshop.paths import NOTEBOOKS, ROOT

END_SECONDS = 20
# Here: no news and no question about them; the file browser shows what a learner opens; errors
# alone are logged, so that the address with its token stays in sight.
SETTINGS = Path(__file__).resolve().parent / "jupyter"
# Links between the kit's folders work from its root. The list of extensions comes from the
# network, so there is none.
DEFAULTS = {
    "--ServerApp.ip": "127.0.0.1",
    "--ServerApp.root_dir": str(ROOT),
    "--LabApp.default_url": f"/lab/tree/{NOTEBOOKS.name}/00_setup.ipynb",
    "--LabApp.extension_manager": "readonly",
}
# Of Jupyter's folder for sockets: a socket's path has 103 bytes at most on macOS, 107 on Linux, and
# "/kernel-", a UUID and "-ipc-1" take 50 of them.
MAX_BYTES = 53


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[JUPYTER OPTIONS]...")
def lab(arguments) -> None:
    """Open JupyterLab on the lessons; Ctrl-C, and then y, ends it and its kernels.

    Starts the emulator if it is down, and then ends it too. Options are handed to
    JupyterLab, for example --no-browser or --port 8890.
    """
    _refuse_exposure(arguments)
    try:
        with local_server.up_for_now(click.echo):
            click.echo("Ctrl-C, and then y, ends JupyterLab and its kernels.")
            code = _run_jupyter(command(arguments))
    except EmulatorError as error:
        raise click.ClickException(str(error)) from error
    raise SystemExit(code)


def command(arguments: tuple[str, ...]) -> list[str]:
    """The command line that starts JupyterLab. What a learner sets wins over DEFAULTS."""
    given = {argument.partition("=")[0] for argument in arguments}
    line = [sys.executable, "-P", "-m", "jupyterlab"]
    defaults = dict(DEFAULTS)
    if len(os.fsencode(jupyter_runtime_dir())) <= MAX_BYTES:
        # Sockets in a folder of the user's: no ports, which another program may take first.
        defaults["--KernelManager.transport"] = "ipc"
    line += [f"{name}={value}" for name, value in defaults.items() if name not in given]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in arguments:
        line.append("--allow-root")  # it listens on this machine only, and wants a token
    return [*line, *arguments]


def _refuse_exposure(arguments: tuple[str, ...]) -> None:
    """Refuse another address, and no token or password, under every name that Jupyter takes."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        value = value if equals else "".join(arguments[position + 1 : position + 2])
        option = name.removeprefix("--").rpartition(".")[2]  # of --ip, --ServerApp.ip, --LabApp.ip
        if option == "ip" and not _is_loopback(value):
            raise click.UsageError(
                f"{name} {value}: JupyterLab stays on this machine's own address, because "
                "whoever reaches it can run programs here. From another computer use an SSH "
                "tunnel: ssh -L 8888:127.0.0.1:8888 this-machine"
            )
        if option in ("token", "password", "hashed_password") and not value.strip("'\""):
            raise click.UsageError(
                f"{name} is empty: without it every user of this machine could run programs as "
                "you. Leave the option out: the address that JupyterLab prints holds a token."
            )


def _is_loopback(address: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(address).is_loopback
    return address == "localhost"


def _run_jupyter(line: list[str]) -> int:
    """Run in the foreground. Jupyter gets Ctrl-C too, and asks what it means."""
    from workshop.course.execute import prefer_own_kernel  # slow, with papermill

    prefer_own_kernel()
    settings = filter(None, [os.environ.get("JUPYTER_CONFIG_PATH"), str(SETTINGS)])
    process = subprocess.Popen(
        line, env=os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(settings)}
    )
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, ignored)
        signal.signal(signal.SIGTERM, before)
        if process.poll() is None:
            process.terminate()
            process.wait(END_SECONDS)
