"""Dry runs: what is left of a plan, when it would run and what determines that. Reads only; nothing is changed."""
