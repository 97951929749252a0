"""Where the kit's folders are. The kit is installed from its own folder (`pip install -e`)."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
CHECKS = NOTEBOOKS / "checks"
QUIZZES = NOTEBOOKS / "quiz"
RECORDED = NOTEBOOKS / "recorded"
SDK_V3 = NOTEBOOKS / "sdk_v3"
TEACHING = ROOT / "docs" / "teaching"
SCRIPTS = ROOT / "scripts"
TRAIN = SCRIPTS / "train"  # to copy: a file for each way to train
DEMOS = SCRIPTS / "demos"  # what lessons only demonstrate
CLOUDFORMATION = ROOT / "cloudformation"
DATA = ROOT / "data"
BUILD = ROOT / "build"
