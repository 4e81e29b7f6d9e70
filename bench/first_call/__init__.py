"""From `git clone` to a first answered tool call on a machine that has nothing of Handrail yet."""
