"""The paper's experiments: settings, plans, records, tables and figures.

``transferable reproduce`` is the entry point. Reading order: `plans` lists the computations,
`running` computes them into `records`, `tables` and `figures` show them beside the published
numbers, and `report` is the command. The modules are imported as ``transferable._paper.plans`` and
so on.
"""
