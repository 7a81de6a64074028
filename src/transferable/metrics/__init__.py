"""How far apart two domains are."""

from transferable.metrics.a_distance import proxy_a_distance
from transferable.metrics.mmcd import mmcd_distance
from transferable.metrics.mmd import mmd_distance

__all__ = ["mmcd_distance", "mmd_distance", "proxy_a_distance"]
