"""The engine of TFDF, TFDF-V, MEDA and ARTL: regularised least squares on a kernel."""
