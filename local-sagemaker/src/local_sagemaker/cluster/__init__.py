"""Instances: the machines of a training job, made of namespaces or of plain processes."""
