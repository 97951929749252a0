"""Writes one line in pieces, as print does with several arguments when nothing buffers."""

import sys
import time

for piece in ("one", " ", "two three", "\n"):
    sys.stdout.write(piece)
    sys.stdout.flush()
    time.sleep(0.2)
