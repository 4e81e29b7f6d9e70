"""Where the boxes of a graph stand and how its lines run: a layered drawing from left to right. Pure, and knows no
task.

`layered.py` is the way in. What follows one another there: `directing` (no cycles, no edge that others imply),
`ranking` (columns), `layering` (bends of long edges), `ordering` (few crossings), `placing` and
`straightening` (heights), `routing` (lines), `packing` (parts that hang together, beside each other).
"""
