"""Recorded workflows: the calls agents made, told again with a clock and ids that never change."""
