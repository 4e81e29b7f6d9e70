"""Work: workflows, their tasks and checkpoints. Records and state machines; no I/O."""
