"""Step 3: the journal, with what a task started from and what it changed; questions to a person that block nothing.
Never changed; later steps change the schema."""

STEP_0003 = """
CREATE TABLE journal (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, directory TEXT NOT NULL, areas TEXT NOT NULL, plan_step TEXT,
  before TEXT NOT NULL, after TEXT NOT NULL, report TEXT NOT NULL, started_at INTEGER NOT NULL, completed_at INTEGER,
  stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_directory ON journal (directory, completed_at, id);
CREATE INDEX journal_workflow ON journal (workflow_id, started_at, id);
ALTER TABLE gate ADD COLUMN kind TEXT NOT NULL DEFAULT 'decision';
CREATE INDEX checkpoint_task_type ON checkpoint (task_id, type, sequence);
CREATE INDEX gate_open ON gate (workflow_id, status, created_at, id);
CREATE INDEX gate_kind ON gate (kind, status, created_at, id);
"""
