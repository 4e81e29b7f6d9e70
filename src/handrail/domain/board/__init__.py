"""Boards: what agents leave for each other under a key."""
