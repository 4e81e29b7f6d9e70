"""A machine whose clock is ahead, behind, or set while agents hold claims."""
