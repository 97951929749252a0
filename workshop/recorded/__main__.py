"""python -m workshop.recorded PAGE.ipynb...: keep the results of executed lessons."""

import sys
from pathlib import Path

from workshop.recorded.keeping import KEEP, keep


def main() -> int:
    """The command; returns its exit status."""
    pages = [Path(one) for one in sys.argv[1:]]
    if not pages or not all(page.is_file() and page.stem[:2] in KEEP for page in pages):
        wanted = ", ".join(f"build/{one}_….ipynb" for one in KEEP)
        print(f"Name executed lessons: {wanted}. `workshop run {' '.join(KEEP)}` makes them.")
        return 2
    for page in pages:
        print(f"{keep(page)}: kept from {page.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
