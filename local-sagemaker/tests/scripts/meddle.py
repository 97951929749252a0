"""Writes into the Python environment that it runs in."""

import pathlib
import sys

path = pathlib.Path(sys.prefix, "meddled.txt")
path.write_text("a job was here")
print("WROTE", path.exists())
