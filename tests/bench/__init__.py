"""The benches: what they conclude from what they saw."""
