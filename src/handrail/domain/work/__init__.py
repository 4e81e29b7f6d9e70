"""Work: workflows, their tasks and the checkpoints on them. Records and state machines; no I/O."""
