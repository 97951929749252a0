"""Ways in which distributed training breaks, each reproduced on this machine.

    from workshop import failures

    failures.names()
    found = failures.reproduce("rank-hangs")        # about 20 seconds
    found.symptom, found.line, found.remedy, found.seconds
    found.log                                       # what the ranks printed
    failures.reproduce("rank-hangs", fixed=True)    # the same without the mistake

The command `workshop break` does the same at a shell.

To add a failure of ranks, touch three files: write the script with the mistake,
scripts/demos/breaking/NAME.py; add its check and its entry to RANKS in ranks.py; add the words
that its line must have to LINES in tests/workshop/test_failure_catalogue.py. A failure of a job
needs the entry in JOBS of jobs.py and the line of the test.
"""

from workshop.failures.catalogue import UnknownFailure, names, of_name, reproduce, table
from workshop.failures.reproduction import Failure, Reproduction

__all__ = ["Failure", "Reproduction", "UnknownFailure", "names", "of_name", "reproduce", "table"]
