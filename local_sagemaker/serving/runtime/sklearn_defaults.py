"""What the scikit-learn image does where a script has no function of its own.

The functions are those of src/sagemaker_sklearn_container/handler_service.py of
https://github.com/aws/sagemaker-scikit-learn-container, read 2026-11-22.
"""

from __future__ import annotations

from local_sagemaker.serving.runtime import codec
from local_sagemaker.serving.runtime.messages import CannotLoad


def model(model_dir):
    raise CannotLoad("the scikit-learn image loads no model by itself: code needs a model_fn.")


def input(data, content_type):
    """JSON, CSV or NPY -> an array; float32 from NPY."""
    array = codec.decode(data, content_type)
    return array if content_type in codec.TEXT else array.astype("float32")


def predict(data, model):
    return model.predict(data)


def output(prediction, accept):
    """An array -> JSON, CSV or NPY."""
    return codec.encode(prediction, accept)
