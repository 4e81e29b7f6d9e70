"""Claims: which agent has which task, and which are on offer. Rules over leases and plans; no I/O."""
