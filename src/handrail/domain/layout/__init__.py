"""Where the boxes of a graph go and how its lines run: a layered drawing from left to right. Pure, and knows nothing of
tasks.

`layered.py` is the entry point. Its stages, in order: `directing` (no cycles, no edge that others imply), `ranking`
(columns), `layering` (bends of long edges), `ordering` (few crossings), `placing` and `straightening` (heights),
`routing` (lines), `packing` (arranging connected parts beside each other).
"""
