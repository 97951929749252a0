"""Sets the kit up in .venv. Standard library only: it runs before anything is installed."""
