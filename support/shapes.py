"""Published shapes, and pairs with random weights in them, as the bench has them."""

from engine.lab.bench.shapes import published_config, read_shape, shape_of_checkpoint
from engine.lab.bench.weights import random_pair

__all__ = ["published_config", "random_pair", "read_shape", "shape_of_checkpoint"]
