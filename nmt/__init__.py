"""A trainer for neural machine translation on TensorFlow."""

import os

# Keras reads its backend when it is first imported; a setting meant for a user's other work must not reach us.
os.environ["KERAS_BACKEND"] = "tensorflow"
