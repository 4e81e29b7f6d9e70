"""Step 1: the ledger, the tables of work and crew, idempotency keys. Never changed; later steps change the schema."""

STEP_0001 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counter (one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL) STRICT;
INSERT INTO counter (one, position) VALUES (1, 0);
CREATE TABLE stream (
  name TEXT PRIMARY KEY, head INTEGER NOT NULL, hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
  stream TEXT NOT NULL, seq INTEGER NOT NULL, position INTEGER NOT NULL UNIQUE, kind TEXT NOT NULL,
  actor TEXT NOT NULL, channel TEXT NOT NULL, at_ms INTEGER NOT NULL, body BLOB NOT NULL, hash TEXT NOT NULL,
  PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_actor ON event (actor, position);
CREATE TABLE idempotency (
  scope TEXT NOT NULL, key TEXT NOT NULL, request_hash TEXT NOT NULL, response BLOB NOT NULL,
  expires_ms INTEGER NOT NULL, PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE workflow (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, source_type TEXT NOT NULL, source_ref TEXT,
  source_content TEXT NOT NULL, repository_path TEXT, plan TEXT NOT NULL, max_parallel_tasks INTEGER NOT NULL,
  auto_create_workspaces INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX workflow_updated ON workflow (updated_at);
CREATE INDEX workflow_repository ON workflow (repository_path, updated_at);
CREATE TABLE task (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, parent_task_id TEXT, name TEXT NOT NULL, description TEXT NOT NULL,
  status TEXT NOT NULL, sequence INTEGER NOT NULL, priority INTEGER NOT NULL, parallel_group TEXT,
  depends_on TEXT NOT NULL, unmet INTEGER NOT NULL, estimated_complexity TEXT, files_likely_affected TEXT NOT NULL,
  plan TEXT NOT NULL,
  context TEXT NOT NULL, outcome TEXT, outcome_detail TEXT NOT NULL, error TEXT, checkpoints INTEGER NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX task_name ON task (workflow_id, name);
CREATE INDEX task_order ON task (workflow_id, sequence);
CREATE INDEX task_ready ON task (workflow_id, priority, sequence) WHERE unmet = 0 AND status = 'pending';
CREATE TABLE checkpoint (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, task_id TEXT NOT NULL, sequence INTEGER NOT NULL, type TEXT NOT NULL,
  summary TEXT NOT NULL, detail TEXT NOT NULL, files_changed TEXT NOT NULL, created_at INTEGER NOT NULL,
  stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX checkpoint_sequence ON checkpoint (task_id, sequence);
CREATE TABLE gate (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, task_id TEXT, status TEXT NOT NULL, question TEXT NOT NULL,
  options TEXT NOT NULL, content_hash TEXT NOT NULL, answer TEXT, feedback TEXT, answered_by TEXT, channel TEXT,
  created_at INTEGER NOT NULL, answered_at INTEGER, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX gate_status ON gate (status, created_at);
CREATE TABLE agent (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, runtime TEXT NOT NULL, role TEXT NOT NULL, status TEXT NOT NULL,
  capabilities TEXT NOT NULL, current_task_id TEXT, workspace_path TEXT, metadata TEXT NOT NULL,
  secret_hash TEXT NOT NULL, last_heartbeat INTEGER NOT NULL, created_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE lease (
  id TEXT PRIMARY KEY, stream TEXT NOT NULL, holder TEXT, fence INTEGER NOT NULL, expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_holder ON lease (holder);
CREATE TABLE message (
  id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, sender_id TEXT NOT NULL, recipient_id TEXT NOT NULL,
  message_type TEXT NOT NULL, subject TEXT, body TEXT NOT NULL, priority TEXT NOT NULL, status TEXT NOT NULL,
  workflow_id TEXT, task_id TEXT, reply_to_id TEXT, created_at INTEGER NOT NULL, read_at INTEGER, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX message_inbox ON message (recipient_id, status, created_at);
CREATE INDEX message_thread ON message (thread_id, created_at);
CREATE TABLE repository (
  id TEXT PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL, created_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
