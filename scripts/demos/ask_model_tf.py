"""Ask a saved TensorFlow model directly, without a server: the measure of what a server answers.

    python scripts/demos/ask_model_tf.py model.tar.gz images.npy probabilities.npy

images.npy: pixels 0 to 255, (n, height, width, channels). The answers are float32 (n, 10).
"""

import argparse
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import ScriptError, run_main
from common.keras2 import tf


def newest(folder: Path) -> Path:
    """Return the folder of the SavedModel with the highest number, which a server would take."""
    folders = [
        path.parent for path in folder.glob("*/saved_model.pb") if path.parent.name.isdecimal()
    ]
    if not folders:
        raise ScriptError("the file holds no SavedModel in a folder with a number as its name")
    return max(folders, key=lambda path: int(path.name))


def main() -> None:
    """Unpack the model, ask it about all images at once, write its answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="the model.tar.gz that a job left")
    parser.add_argument("images", type=Path, help="a .npy file of images")
    parser.add_argument("answers", type=Path, help="the .npy file to write")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Its own job's file. Python 3.11.3 and older have no filters against strange ones.
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(args.model) as archive:
            archive.extractall(folder, **safely)
        serve = tf.saved_model.load(str(newest(Path(folder)))).signatures["serving_default"]
        images = tf.cast(np.load(args.images), tf.float32)
        np.save(args.answers, serve(images=images)["probabilities"].numpy())


if __name__ == "__main__":
    run_main(main)
