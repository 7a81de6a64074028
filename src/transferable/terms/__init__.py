"""What objectives are made of: quadratic forms tr(F' S F) of the scores, and class confusion.

A term knows how to apply its matrix S to any table of n rows (``apply``). Applied to scores it
gives the gradient, applied to a kernel matrix the block an exact solve needs, and applied to
features what their projection is made of. A term of low rank also gives ``columns`` E with
S = E E', which lets a solver update a factorisation instead of computing a new one.
"""
