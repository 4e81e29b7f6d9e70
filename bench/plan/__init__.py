"""Does asking a plan cost more the larger it grows?

`python -m bench.plan` measures what is next and a context bundle in plans of 100, 10,000 and 100,000 tasks, the largest
with a million events, as ratios to the smallest in the same run.
"""
