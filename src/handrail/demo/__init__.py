"""The demo: three agents in a throw-away repository, using the real tools. No rules live here, and nothing is faked."""
