"""`import keras` for an image whose TensorFlow is older than 2.16: Keras 2.

TensorFlow's own tf.keras follows TF_USE_LEGACY_KERAS. This is for scripts and libraries that
import keras by its name, as Horovod's callbacks do: every module of keras is tf_keras's.
"""

import importlib
import importlib.abc
import importlib.util
import sys

import tf_keras


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds keras.X as the very module tf_keras.X."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("keras."):
            return None
        if importlib.util.find_spec("tf_" + name) is None:
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        return importlib.import_module("tf_" + spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Alias())
sys.modules[__name__] = tf_keras
