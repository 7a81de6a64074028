"""What the methods share: an engine for each family."""
