"""Measurements that were kept, for machines that cannot make them: dated, and never mixed up.

Where instances are plain processes, links cannot be narrowed. A lesson then shows what was
measured elsewhere, and says so:

    kept = recorded.of("06")
    print(kept.caption)
    kept.results["narrowing"]

`python -m workshop.recorded build/06_vpc_colocation.ipynb` keeps the results of a lesson that was
just executed on this machine.
"""

from workshop.recorded.keeping import Kept, keep, of

__all__ = ["Kept", "keep", "of"]
