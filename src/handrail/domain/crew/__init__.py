"""Crew: agents, what they hold, what they tell each other. Records and states; no I/O."""
