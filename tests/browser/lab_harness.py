"""JupyterLab and Chromium, started, used and ended as a learner would."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from workshop.launch.processes import free_port
from workshop.paths import BUILD

SCREENSHOTS = BUILD / "screenshots"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--window-size=1300,1500",
)
PATIENCE = 240  # seconds for what takes one or two on a machine with nothing else to do


@contextlib.contextmanager
def chromium(folder: Path, log_requests: bool = False):
    """A headless Chromium with a profile of its own in `folder`, steered by chromedriver.

    Where there is none the test is skipped. log_requests: keep what pages ask for, as the driver's
    "performance" log.
    """
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs Chromium and chromedriver (Debian: apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    if os.geteuid() == 0:  # Chromium's sandbox refuses to run for root
        options.add_argument("--no-sandbox")
    if log_requests:
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.ignore_local_proxy_environment_variables()
    # Both paths are given, so that Selenium does not look for downloads.
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


@dataclass
class Lab:
    """A running `workshop lab`. keyboard: what is written there is typed at its terminal.

    root: the folder that it shows. state: its endpoint's state directory.
    """

    process: subprocess.Popen
    keyboard: int
    url: str
    token: str
    root: Path
    state: Path

    def address(self, notebook: str) -> str:
        """Where a notebook is opened. notebook: its path below the root.

        In a workspace of its own: else JupyterLab first opens again what was open last, and what
        a test looks at, or runs, is for a while that other notebook.
        """
        workspace = Path(notebook).stem
        return f"{self.url}/lab/workspaces/{workspace}/tree/{notebook}?token={self.token}"


def start_lab(folder: Path, root: Path) -> Lab:
    """Start `workshop lab` on `root`, with settings and an endpoint of its own in `folder`."""
    port, output = free_port(), folder / "lab.log"
    settings = {
        "LOCAL_SAGEMAKER_STATE_DIR": folder / "state",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": folder.parent / "run",  # short: a socket's path has 107 bytes
        "JUPYTERLAB_SETTINGS_DIR": folder / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
        "IPYTHONDIR": folder / "ipython",
    }
    options = ["--no-browser", f"--ServerApp.root_dir={root}", f"--ServerApp.port={port}"]
    keyboard, terminal = pty.openpty()  # so that it can ask, and be answered
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "workshop.cli", "lab", *options, "--ServerApp.port_retries=0"],
            env=os.environ | {name: str(value) for name, value in settings.items()},
            stdin=terminal,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    os.close(terminal)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
    shown = re.compile(rf"{url}/lab/tree/notebooks/00_setup.ipynb\?token=(\w+)\s*$")
    while not (address := shown.search(output.read_text())):  # the last thing that it says
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError(f"JupyterLab did not start:\n{output.read_text()}")
        time.sleep(0.2)
    return Lab(process, keyboard, url, address[1], root, folder / "state")


def end_lab(lab: Lab) -> None:
    """What a learner does in the terminal: Ctrl-C, then y."""
    os.killpg(lab.process.pid, signal.SIGINT)
    os.write(lab.keyboard, b"y\n")
    try:
        lab.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(lab.process.pid, signal.SIGKILL)
        raise
    finally:
        os.close(lab.keyboard)


def wait_for(event: str, done, seconds: float):
    """Call `done` until it returns something true; return that. TimeoutError names `event`."""
    deadline = time.monotonic() + seconds
    while not (result := done()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{event}: not within {seconds:.0f} s")
        time.sleep(0.3)
    return result


class Page:
    """An open notebook in JupyterLab."""

    PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden) "

    def __init__(self, driver, lab: Lab, notebook: str) -> None:
        self.driver, self.path = driver, lab.root / notebook
        driver.get(lab.address(notebook))
        wait_for(f"{notebook} is shown", self.shown, PATIENCE)
        wait_for("the kernel is idle", self.idle, PATIENCE)

    def all(self, selector: str) -> list:
        """The elements of the notebook that fit a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, self.PANEL + selector)

    def text(self, selector: str) -> str:
        """The text of all elements that fit a CSS selector."""
        return "\n".join(element.text for element in self.all(selector))

    def click(self, element) -> None:
        """Scroll to an element and click it."""
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def shown(self) -> bool:
        """Whether this notebook is the one whose tab is in front."""
        current = "#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current .lm-TabBar-tabLabel"
        tabs = self.driver.find_elements(By.CSS_SELECTOR, current)
        return [tab.text for tab in tabs] == [self.path.name]

    def idle(self) -> bool:
        """Whether the kernel is there and has nothing to do. RuntimeError for a window."""
        if texts := self.windows():
            raise RuntimeError(f"JupyterLab shows a window: {texts}")
        name = [e.text for e in self.all(".jp-KernelName")]
        idle = self.all('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        return bool(idle) and name != ["No Kernel"]

    def windows(self) -> list[str]:
        """What JupyterLab says or asks in windows and notes over the page."""
        windows = self.driver.find_elements(By.CSS_SELECTOR, ".jp-Dialog, .jp-toastContainer > *")
        return [window.text for window in windows]

    def menu(self, name: str, command: str) -> None:
        """Choose an entry of the menu bar."""
        bar = self.driver.find_elements(By.CSS_SELECTOR, "#jp-MainMenu .lm-MenuBar-itemLabel")
        next(item for item in bar if item.text == name).click()
        entry = f'.lm-Menu-item[data-command="{command}"]'
        wait_for(
            f"the entry {command}",
            lambda: self.driver.find_elements(By.CSS_SELECTOR, entry),
            PATIENCE,
        )[0].click()

    def prompts(self) -> list[str]:
        """What stands before each code cell: [ ] not run, [*] waits or runs, [7] ran."""
        prompts = self.all(".jp-CodeCell .jp-InputPrompt")
        return self.driver.execute_script(
            "return arguments[0].map(e => e.textContent.trim())", prompts
        )

    def errors(self) -> list[str]:
        """The text of each error that a cell shows."""
        texts = [e.text for e in self.all('[data-mime-type="application/vnd.jupyter.stderr"]')]
        return [text for text in texts if "Traceback (most recent call last)" in text]

    def has_begun(self) -> bool:
        """Whether a cell runs, or has run."""
        return any(prompt not in ("", "[ ]:") for prompt in self.prompts())

    def run_all(self, seconds: float) -> None:
        """Run > Run All Cells, and wait until all have run or one has failed."""
        for _ in range(3):  # a page that is still busy may lose a click, as people see it do
            self.menu("Run", "runmenu:run-all")
            with contextlib.suppress(TimeoutError):
                wait_for("a cell runs", self.has_begun, 20)
                break

        def ended() -> bool:
            waits = any("*" in text or text in ("", "[ ]:") for text in self.prompts())
            return bool(self.errors()) or (not waits and self.idle())

        wait_for(f"{self.path.name} has run", ended, seconds)

    def save(self) -> None:
        """File > Save, and wait until the file has what the page shows."""
        before = self.path.stat().st_mtime_ns
        self.menu("File", "docmanager:save")
        wait_for("the file is saved", lambda: self.path.stat().st_mtime_ns > before, PATIENCE)

    def picture(self, element, name: str) -> Path:
        """Scroll to an element and keep what the window shows, in build/screenshots/."""
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        time.sleep(0.5)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{self.path.stem}-{name}.png"
        self.driver.save_screenshot(str(path))
        return path
