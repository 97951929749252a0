"""For the makers of the course: sync, execute, pages, teaching tables."""
