"""How far apart two domains are, and how far neighbours agree."""

from transferable.metrics.a_distance import proxy_a_distance
from transferable.metrics.consistency import neighbor_consistency
from transferable.metrics.mmcd import mmcd_distance
from transferable.metrics.mmd import mmd_distance

__all__ = ["mmcd_distance", "mmd_distance", "neighbor_consistency", "proxy_a_distance"]
