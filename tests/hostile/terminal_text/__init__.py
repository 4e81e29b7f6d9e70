"""Text that would steer a terminal."""
