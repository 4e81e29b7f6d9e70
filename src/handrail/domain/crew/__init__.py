"""Crew: agents, what they hold, what they say to each other. Records and states; no I/O."""
