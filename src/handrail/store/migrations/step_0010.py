"""Step 10: a second copy of what changes without an event, so that a flipped bit in it shows (`db verify`). SQLite
compares indexes with their tables; a server has checksums for its pages. Never changed; later steps change the
schema."""

STEP_0010 = """
CREATE INDEX lease_presence ON lease (renewed_ms, expires_ms);
"""
