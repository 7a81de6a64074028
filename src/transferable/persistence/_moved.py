"""Where classes have gone since files were written: what old files call them, and their name now.

A class that moves keeps its old name here for as long as its files are to be read.
"""

from __future__ import annotations

__all__ = ["MOVED"]

MOVED: dict[str, str] = {}
