"""A server that was started before the project's file became stricter, and an agent that would rather it had not."""
