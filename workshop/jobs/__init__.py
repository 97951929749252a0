"""Session, follow, logs: the one switch between this machine and AWS."""
