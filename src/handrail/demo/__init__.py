"""The demo: three agents on a throw-away repository, over the real tools. No rule lives here; nothing is pretended."""
