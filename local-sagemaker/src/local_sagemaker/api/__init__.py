"""SageMaker's calls that are answered here. Everything else goes to moto."""
