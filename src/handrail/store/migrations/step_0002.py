"""Step 2: plans maintained incrementally. Dependencies and tallies as tables, indexes for the queries of a plan,
templates. Never changed; later steps change the schema."""

STEP_0002 = """
ALTER TABLE task ADD COLUMN requires TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN acceptance TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN unblocks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN open_children INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN started_at INTEGER;
ALTER TABLE task ADD COLUMN finished_at INTEGER;
ALTER TABLE task ADD COLUMN assigned_agent_id TEXT;
ALTER TABLE task ADD COLUMN claimed_at INTEGER;
ALTER TABLE task ADD COLUMN workspace_id TEXT;
DROP INDEX task_ready;
DROP INDEX task_order;
CREATE INDEX task_ready ON task
  (workflow_id, status, unmet, open_children, priority DESC, sequence, unblocks DESC, id);
CREATE INDEX task_order ON task (workflow_id, sequence, id);
CREATE INDEX task_state ON task (workflow_id, status, sequence, id);
CREATE INDEX task_recent ON task (workflow_id, status, updated_at, id);
CREATE INDEX task_group ON task (workflow_id, parallel_group, status) WHERE parallel_group IS NOT NULL;
CREATE INDEX task_parent ON task (parent_task_id, status) WHERE parent_task_id IS NOT NULL;
CREATE INDEX task_status ON task (status, updated_at, id);
CREATE INDEX checkpoint_type ON checkpoint (workflow_id, type, created_at, id);
CREATE INDEX workflow_status ON workflow (status, updated_at, id);
CREATE TABLE dependency (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, task_id TEXT NOT NULL, needs_id TEXT NOT NULL,
  inherited INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_task ON dependency (task_id, id);
CREATE INDEX dependency_needs ON dependency (needs_id, id);
CREATE TABLE tally (
  id TEXT PRIMARY KEY, counts TEXT NOT NULL, worked_ms INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE template (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT, tasks TEXT NOT NULL, variables TEXT NOT NULL,
  created_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
