"""Step 8: boards, operations that can be cancelled, versions of plans; an index of events by the family of their kind,
for watching one family across all streams. Never changed; later steps change the schema."""

STEP_0008 = """
CREATE TABLE board (
  id TEXT PRIMARY KEY, namespace TEXT NOT NULL, value TEXT NOT NULL, tags TEXT NOT NULL, version INTEGER NOT NULL,
  set_by TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, expires_at INTEGER,
  stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX board_namespace ON board (namespace, id);
CREATE INDEX board_expires ON board (namespace, expires_at, id);
CREATE TABLE running (
  id TEXT PRIMARY KEY, tool TEXT NOT NULL, run_id TEXT, task_id TEXT, agent TEXT NOT NULL, session TEXT,
  status TEXT NOT NULL, reason TEXT, started_at INTEGER NOT NULL, ended_at INTEGER, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX running_run ON running (run_id, status, started_at, id);
CREATE INDEX idempotency_expires ON idempotency (expires_ms);
CREATE INDEX workflow_repository_id ON workflow (repository_path, id);
ALTER TABLE tally ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tally ADD COLUMN laid_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX event_family ON event (substr(kind, 1, instr(kind, '.')), position);
"""
