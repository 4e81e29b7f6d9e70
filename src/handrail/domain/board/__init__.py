"""Boards: values that agents leave for each other under keys."""
