"""Step 5: workspaces and reservations. Never changed; later steps change the schema."""

STEP_0005 = """
CREATE TABLE workspace (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, path TEXT NOT NULL, branch TEXT NOT NULL, base_branch TEXT,
  status TEXT NOT NULL, merge_commit TEXT, managed INTEGER NOT NULL, base_commit TEXT, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX workspace_workflow ON workspace (workflow_id, status, created_at, id);
CREATE INDEX workspace_path ON workspace (path, status);
CREATE INDEX workspace_status ON workspace (status, created_at, id);
CREATE INDEX task_workspace ON task (workspace_id, sequence, id) WHERE workspace_id IS NOT NULL;
CREATE TABLE reservation (
  id TEXT PRIMARY KEY, repository TEXT NOT NULL, agent_id TEXT NOT NULL, task_id TEXT, paths TEXT NOT NULL, reason TEXT,
  created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, released_at INTEGER, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_live ON reservation (repository, released_at, expires_at);
CREATE INDEX reservation_agent ON reservation (agent_id, released_at, expires_at);
"""
