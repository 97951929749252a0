"""Find all that a seat has in an account, delete it, and look again.

    found = cleaning.find(session)       # looks, and changes nothing
    report = cleaning.clean(session)     # deletes; report.left is what a second look found

Only what carries the two tags of the kit, `workshop` and `seat`, is ever deleted. A name proves
nothing: `workshop-a-b-storage` begins like the things of seat `a`, and is seat `a-b`'s.

`steps` has the order: whatever proves who owns a thing goes after that thing. So a run that was
broken off at any place can be finished by the next one.
"""

from workshop.cleaning.found import Found, find
from workshop.cleaning.running import Cleaner, Report, clean
from workshop.cleaning.things import Stranger, Thing

__all__ = ["Cleaner", "Found", "Report", "Stranger", "Thing", "clean", "find"]
