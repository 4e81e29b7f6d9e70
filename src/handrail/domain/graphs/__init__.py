"""Graphs that are changed by several at once: values, changes, patches, invariants, transactions. Pure; no store."""
