"""Step 7: how far a run goes, who drives it, what it was forked from. Never changed; later steps change the schema."""

STEP_0007 = """
ALTER TABLE pipeline ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE pipeline ADD COLUMN holder TEXT NOT NULL DEFAULT 'null';
ALTER TABLE pipeline ADD COLUMN forked_from TEXT;
"""
