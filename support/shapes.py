"""Published shapes, and pairs with random weights in them, as the bench has them."""

from engine.lab.bench.shapes import configs_of, period_of, published_config, read_shape, shape_of_checkpoint, shorten
from engine.lab.bench.weights import random_pair

__all__ = ["configs_of", "period_of", "published_config", "random_pair", "read_shape", "shape_of_checkpoint", "shorten"]
