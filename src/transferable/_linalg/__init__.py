"""Numerical building blocks, independent of domains, classes and labels."""
