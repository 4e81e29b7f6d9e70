"""Which files of Handrail's folder git is told to ignore: those of the database, and the snapshots. Each by its whole
name, so that nobody's file is out of sight because it looks similar; `outside/tracking/own_files.py` knows the same."""

STATE_FILES = """\
/handrail.db
/handrail.db-wal
/handrail.db-shm
/handrail.db-journal
/handrail.db.gate
/handrail.db.hooks
/handrail.db.hooks-journal
/handrail.db-search
/handrail.db-search-wal
/handrail.db-search-shm
/handrail.db-search-journal
/handrail.db.before-restore
/handrail.db.before-restore-[0-9]
/handrail.db.before-rebuild
/handrail.db.before-rebuild-[0-9]
/handrail.db.schema-[0-9]
/handrail.db.schema-[0-9][0-9]
/handrail.db.part-[0-9]*
/handrail.db.rebuilt-[0-9]*
/snapshots/
"""
