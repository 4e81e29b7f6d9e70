"""Does the next action of a run cost more, the more runs there have been?

`python -m bench.pipeline` measures the processor time of `pipeline_next_action` in stores with 1, 100 and 10,000 past
runs, as ratios to the smallest in the same run; and of the confirmation, which reads past runs once.
"""
