"""As Keras 3's own examples (keras.io, "Training & evaluation"): a .keras file, a callback."""

import os

import keras
import numpy as np

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
path = os.path.join(os.environ["SM_MODEL_DIR"], "model.keras")
saves = keras.callbacks.ModelCheckpoint(path, save_best_only=True, monitor="loss")
history = model.fit(np.eye(4), np.ones((4, 1)), epochs=2, verbose=2, callbacks=[saves])
keras.saving.load_model(path)
print("KERAS", keras.__version__.split(".")[0], len(history.history["loss"]), flush=True)
