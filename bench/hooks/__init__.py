"""What a client's hook costs, against an interpreter that does nothing."""
