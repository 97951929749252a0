"""`workshop ...` in this process, a session, an estimator, and the pictures that are shown."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from workshop.cli import main


@pytest.fixture
def command(monkeypatch):
    """A function: run `workshop ...` with these words; its exit status and output."""
    monkeypatch.setenv("COLUMNS", "150")

    def command(*words: object, answer: str | None = None) -> tuple[int, str]:
        done = CliRunner().invoke(main, [str(word) for word in words], input=answer)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    return command


@pytest.fixture
def session(sagemaker_emulator, clean_aws):
    """A local session on the tests' emulator."""
    import workshop

    return workshop.session("local", seat="tests")


@pytest.fixture
def estimator():
    """Makes an estimator without a job. Its script only talks, or fails if `fail` is given."""
    from sagemaker.tensorflow import TensorFlow

    def make(session, name: str, **hyperparameters) -> TensorFlow:
        return TensorFlow(
            entry_point="talk.py",
            framework_version="2.12.0",
            py_version="py310",
            instance_type="ml.c5.xlarge",
            instance_count=1,
            hyperparameters=hyperparameters,
            **session.job_settings(name, source_dir=Path(__file__).parent / "jobs" / "job_script"),
        )

    return make


@pytest.fixture(scope="module")
def kernel():
    """A real kernel: (its manager, a client)."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def shown(monkeypatch):
    """The axes of each picture that is shown, with `alt`; all figures must be closed at the end."""
    import matplotlib.pyplot as plt  # slow, and few tests draw

    from workshop.plots import look

    drawn = []

    def show_figure(figure, alt: str) -> None:
        for axes in figure.axes:
            axes.alt = alt
            drawn.append(axes)

    monkeypatch.setattr(look, "show_figure", show_figure)
    before = plt.get_fignums()
    yield drawn
    assert plt.get_fignums() == before, "a figure was not closed"
