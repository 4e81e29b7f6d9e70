"""The documents as they are read: every session typed again, every command checked, every link followed."""
