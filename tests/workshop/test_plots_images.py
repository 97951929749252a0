"""Pictures beside each other, as lesson 08 shows what a model gets wrong."""

import numpy as np
import pytest

from workshop import plots


@pytest.mark.parametrize("count", [1, 6, 7])
def test_each_picture_has_its_caption(shown, count):
    pictures = np.arange(count * 4, dtype=np.uint8).reshape(count, 2, 2, 1)
    plots.images(pictures, [f"number {one}" for one in range(count)], "Numbers")
    drawn = [one for one in shown if one.images]
    assert [one.get_title() for one in drawn] == [f"number {one}" for one in range(count)]
    for axes, picture in zip(drawn, pictures, strict=True):
        assert np.array_equal(axes.images[0].get_array(), picture[..., 0])
        assert axes.images[0].get_clim() == (0, 255), "each picture by the same scale"


def test_no_picture_shows_nothing_and_a_missing_caption_is_said(shown):
    plots.images(np.zeros((0, 2, 2, 1), np.uint8), [], "None")
    assert shown == []
    with pytest.raises(ValueError, match="2 pictures have 1 captions"):
        plots.images(np.zeros((2, 2, 2, 1), np.uint8), ["one"], "Two")
