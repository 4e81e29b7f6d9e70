"""The official conformance runner against a fixture server of our own. Nothing here is part of Handrail."""
