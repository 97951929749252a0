"""A model that is asked without a server: what is said where it gives no answer."""

from types import SimpleNamespace

import numpy as np
import pytest

from workshop.jobs import inference
from workshop.jobs.inference import InferenceFailed


def test_a_file_without_a_model_is_named(tmp_path, monkeypatch):
    (tmp_path / "ask_model_tf.py").write_text("raise SystemExit('error: holds no SavedModel')")
    monkeypatch.setattr(inference, "DEMOS", tmp_path)
    s3 = SimpleNamespace(download_file=lambda bucket, key, path: None)
    session = SimpleNamespace(client=lambda service: s3)
    with pytest.raises(InferenceFailed, match=r"s3://b/m\.tar\.gz gave(?s:.*)holds no SavedModel"):
        inference.infer("s3://b/m.tar.gz", np.zeros((1, 8, 8, 1)), session)
