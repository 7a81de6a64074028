"""The paper's experiments: settings, plans, records, tables and figures.

``python -m paper`` is the entry point. Reading order: `plans` lists the computations, `running`
computes them into `records`, `tables` and `figures` show them beside the published numbers, and
`report` runs a study with them.
"""
