"""A local endpoint of the tests' own, and an environment without the user's AWS settings."""

import os

import pytest

from local_sagemaker import daemon
from workshop.jobs import local_server as workshop_endpoint


@pytest.fixture(scope="session")
def own_endpoint(tmp_path_factory):
    """An endpoint with its own state directory on a free port."""
    with pytest.MonkeyPatch.context() as patch:
        state = tmp_path_factory.mktemp("state")
        patch.setenv("WORKSHOP_STATE_DIR", str(state))
        found = daemon.start(state, 0)
        yield found
        daemon.stop(state)


@pytest.fixture
def clean_aws(monkeypatch, tmp_path):
    """No AWS variable, file or metadata service of this machine is seen."""
    for name in [one for one in os.environ if one.startswith(("AWS_", "SAGEMAKER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield
    workshop_endpoint.point_back()
    os.environ.pop("SAGEMAKER_SUPPRESS_V2_WARNING", None)


@pytest.fixture
def session(own_endpoint, clean_aws):
    """A local session on the tests' endpoint."""
    import workshop

    return workshop.session("local", seat="tests")


@pytest.fixture
def shown(monkeypatch):
    """The axes of each picture that is shown, with `alt`; all figures must be closed at the end."""
    import matplotlib.pyplot as plt  # slow, and few tests draw

    from workshop.plots import look

    found = []

    def show_figure(figure, alt: str) -> None:
        for axes in figure.axes:
            axes.alt = alt
            found.append(axes)

    monkeypatch.setattr(look, "show_figure", show_figure)
    before = plt.get_fignums()
    yield found
    assert plt.get_fignums() == before, "a figure was not closed"
