"""Ways in which distributed training breaks, each reproduced on this machine.

    from workshop import breaking

    breaking.names()
    shown = breaking.show("rank-hangs")             # about 20 seconds; what came of it
    shown.symptom, shown.line, shown.remedy, shown.seconds
    breaking.show("rank-hangs", mended=True)        # the same without the mistake

The command `workshop break` does the same at a shell.
"""

from workshop.breaking.failures import UnknownFailure, names, of_name, show, table
from workshop.breaking.shown import Failure, Shown

__all__ = ["Failure", "Shown", "UnknownFailure", "names", "of_name", "show", "table"]
