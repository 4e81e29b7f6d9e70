"""Step 4: the crew. Leases record since when they are held and when their holder was last heard from; messages have a
place in their inbox, may expire and may ask to be acknowledged; tokens of people and agents. Never changed; later steps
change the schema."""

STEP_0004 = """
ALTER TABLE lease ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN renewed_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent DROP COLUMN last_heartbeat;
ALTER TABLE agent ADD COLUMN mismatches INTEGER NOT NULL DEFAULT 0;
CREATE INDEX agent_created ON agent (created_at, id);
CREATE INDEX task_claimed ON task (workflow_id, status, assigned_agent_id) WHERE assigned_agent_id IS NOT NULL;
DROP INDEX message_inbox;
DROP INDEX message_thread;
ALTER TABLE message ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN urgency INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 9007199254740991;
ALTER TABLE message ADD COLUMN ack_required INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message ADD COLUMN acked_at INTEGER;
CREATE UNIQUE INDEX message_place ON message (recipient_id, sequence);
CREATE INDEX message_inbox ON message (recipient_id, status, urgency DESC, sequence);
CREATE INDEX message_thread ON message (thread_id, created_at, id);
CREATE INDEX message_sender ON message (sender_id, created_at, id);
CREATE TABLE token (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, rights TEXT NOT NULL, agent_id TEXT, secret_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL, revoked_at INTEGER, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX token_created ON token (created_at, id);
"""
