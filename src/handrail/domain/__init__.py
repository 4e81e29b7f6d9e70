"""Domain: the rules of each capability as pure functions over plain data. No I/O; the world comes in through ports."""
