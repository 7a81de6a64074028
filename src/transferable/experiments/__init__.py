"""The paper's experiments: settings, cells, records, tables and figures.

``transferable reproduce`` is the way in. Reading order: `cells` says what is computed, `runner`
computes it into `records`, `tables` and `figures` show it beside what `published` holds.
"""
