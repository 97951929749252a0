"""The life of a training job: request, channels, instances, model.tar.gz."""
