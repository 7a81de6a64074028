"""What the site makes of the library: its reference, its table of methods, its links."""
