"""The engine of TFDF, TFDF-V, MEDA and ARTL: an objective, two solvers, rounds."""
