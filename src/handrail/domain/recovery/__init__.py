"""Recovery: what an agent that forgot everything needs to go on, within a token budget. Reading and rules; no I/O."""
