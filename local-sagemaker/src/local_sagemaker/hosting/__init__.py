"""Endpoints and batch transform: records, worker processes, and what answers in a worker."""
