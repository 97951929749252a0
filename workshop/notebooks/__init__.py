"""Notebooks as files: find them, keep their two forms in step, run them, show what came out."""
