"""Graphs that several parties change at once: values, changes, patches, invariants, transactions. Pure; no store."""
