"""Helpers of the demonstrations; they travel with them in SageMaker's source_dir."""
