"""Numerical building blocks that know nothing of domains, classes or labels."""
