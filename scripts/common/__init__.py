"""Helpers of the training scripts; they travel with them in SageMaker's source_dir."""
