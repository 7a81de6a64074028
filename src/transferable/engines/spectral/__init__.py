"""The engine of the methods that learn maps: features in which each is a small eigenproblem."""
