"""What runs in a worker process, in place of AWS's serving images. Started by worker.py."""
