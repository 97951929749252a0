"""python -m workshop.cli: the command `workshop` where it is not on the PATH."""

from workshop.cli import main

main()
