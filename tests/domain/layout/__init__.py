"""The layered drawing: every step of it, and whole drawings looked at as geometry."""
