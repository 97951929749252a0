"""A session on the tests' own endpoint, and the pictures that are shown."""

import pytest


@pytest.fixture
def session(sagemaker_emulator, clean_aws):
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
