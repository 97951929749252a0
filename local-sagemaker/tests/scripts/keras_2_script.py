"""What scripts for TensorFlow 2.12's image do: Keras 2's optimizers, backend, .h5 files.

Imitates amazon-sagemaker-examples' Keras scripts and Horovod's callbacks in
horovod/examples/tensorflow2/tensorflow2_keras_mnist.py.
"""

import os

import keras.backend
import tensorflow as tf
from keras.layers import Dense

model = tf.keras.Sequential([Dense(2, input_shape=(3,))])
model.compile(optimizer=tf.keras.optimizers.legacy.SGD(0.01), loss="mse")
model.reset_states()
print("RATE", round(float(keras.backend.get_value(model.optimizer.lr)), 4))
path = os.path.join(os.environ["SM_MODEL_DIR"], "weights.h5")
model.save_weights(path)
