"""Step 6: runs of pipelines. Never changed; later steps change the schema."""

STEP_0006 = """
CREATE TABLE pipeline (
  id TEXT PRIMARY KEY, repository_path TEXT NOT NULL, workspace TEXT NOT NULL, spec_name TEXT NOT NULL,
  title TEXT NOT NULL, request TEXT NOT NULL, source_type TEXT NOT NULL, source_url TEXT, source_id TEXT,
  effort TEXT NOT NULL, branch TEXT, flow TEXT NOT NULL, flags TEXT NOT NULL, state TEXT NOT NULL,
  task_ids TEXT NOT NULL, dispatched TEXT NOT NULL, log TEXT NOT NULL, findings TEXT NOT NULL, friction TEXT NOT NULL,
  lessons TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pipeline_workspace ON pipeline (repository_path, workspace, created_at, id);
CREATE INDEX pipeline_updated ON pipeline (repository_path, updated_at, id);
"""
