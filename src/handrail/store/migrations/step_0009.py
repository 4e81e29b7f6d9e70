"""Step 9: graphs that are not plans, transactions on graphs, a team's values, facts. Never changed; later steps change
the schema."""

STEP_0009 = """
CREATE TABLE graph (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, metadata TEXT NOT NULL, repository_path TEXT,
  created_by TEXT NOT NULL, created_at INTEGER NOT NULL, committed_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_repository ON graph (repository_path, id);
CREATE TABLE graph_node (
  id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL, attributes TEXT NOT NULL,
  stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_node_graph ON graph_node (graph_id, id);
CREATE TABLE graph_edge (
  id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, key TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
  label TEXT NOT NULL, said TEXT NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX graph_edge_graph ON graph_edge (graph_id, id);
CREATE TABLE tx (
  id TEXT PRIMARY KEY, graph_id TEXT NOT NULL, base_version INTEGER NOT NULL, owner TEXT NOT NULL, note TEXT,
  operations TEXT NOT NULL, state TEXT NOT NULL, started_at INTEGER NOT NULL, expires_at INTEGER, ended_at INTEGER,
  final_version INTEGER, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tx_graph ON tx (graph_id, state, started_at, id);
CREATE TABLE value_set (
  id TEXT PRIMARY KEY, document TEXT NOT NULL, version INTEGER NOT NULL, set_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE fact (
  id TEXT PRIMARY KEY, subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL, source TEXT,
  confidence INTEGER NOT NULL, said TEXT NOT NULL, repository_path TEXT, created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, stream TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX fact_subject ON fact (subject, predicate, id);
CREATE INDEX fact_object ON fact (object, predicate, id);
CREATE INDEX fact_predicate ON fact (predicate, id);
"""
