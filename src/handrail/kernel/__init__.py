"""Kernel: what every ring shares. Pure Python and the standard library; no I/O, no third-party import."""
