"""Records among what a script prints."""

import pytest

from workshop.events import event, events


@pytest.mark.parametrize(
    "text", ["", "x", '{"event": broken', "[1]", '"event"', '{"epoch": 1}', " {}"]
)
def test_other_lines_are_no_records(text):
    assert event(text) is None


def test_records_of_one_kind_in_their_order():
    lines = ['{"event": "epoch", "epoch": 1}', "x", '{"event": "start"}']
    lines.append('{"event": "epoch", "epoch": 2}')
    assert [one["epoch"] for one in events(lines, "epoch")] == [1, 2]
    assert events(lines, "nothing") == []
