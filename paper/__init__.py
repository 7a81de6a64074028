"""The paper's experiments: settings, plans, records, tables and figures.

``transferable reproduce`` is the way in. Reading order: `plans` lists what is computed, `running`
computes it into `records`, `tables` and `figures` show it beside the published numbers, and
`report` is the command. The modules are imported as ``transferable._paper.plans`` and so on.
"""
