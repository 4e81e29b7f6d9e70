"""A feature built by several agents at once: exports in three parallel parts, one of them with a subtask under way."""

# ruff: noqa: E501 - texts stand as they were written

from __future__ import annotations

from tests.domain.recovery.samples.telling import Telling

CURRENT = "stream rows from the database"
"""Four tasks are in progress; this agent worked on one of them."""

REQUEST = """\
We want people to export any report as CSV or XLSX.

Today the only way out of the product is the PDF button. Sales loses deals over it: three of the last ten lost
enterprise prospects named exports. The report page already knows its filters and columns; an export is what the page
shows, all rows instead of one page, in the order shown.

How it should work
1. A button "Export" on every report, with CSV and XLSX. One click starts the export in the background; the person can
   leave the page. When it is ready they get a notification with a link that works for 24 hours.
2. Exports up to 5,000,000 rows must work. The app servers have 1 GB of memory each and serve other people at the same
   time, so an export may never hold more than a few megabytes of rows in memory.
3. Columns a person may not see in the report may not be in their export. Use the same permission filter as the page,
   not a copy of it.
4. CSV: UTF-8 with BOM (Excel on Windows), comma, CRLF, values that begin with = + - @ are prefixed with a single quote.
   XLSX: one sheet, frozen header row, real dates and numbers.
5. An administrator can see who exported what and when. Keep that for 400 days.
6. At most two running exports a person and ten an organisation; further ones wait in line and say so.

Out of scope: scheduled exports, exports to cloud drives, templates.

Technical notes from the platform team: use the existing job queue (jobs/), not a new service. Files go to the object
store under exports/<org>/<id>, lifecycle rule deletes after 2 days. The reports API is versioned; additions are fine in
v3. Feature flag `exports`, on for internal users first.
"""

PLAN = {
    "summary": "Background exports of reports as CSV and XLSX: a job per export that streams rows into the object store, an "
    "API and a button to start and follow it, an audit trail.",
    "approach": "Agree on the export record and its states first. Then three parts at once: the worker that writes files, "
    "the API with limits and permissions, the interface. Join them behind the flag, load-test with five million rows, "
    "write the help page.",
    "risks": ["XLSX libraries that keep the sheet in memory", "long transactions block vacuum on the reports replica"],
    "assumptions": ["the permission filter can be used outside a request"],
    "tasks": [
        {
            "name": "export record",
            "description": "Table exports with states queued, running, ready, failed, expired; who, what, when.",
            "sequence": 1,
        },
        {
            "name": "worker",
            "description": "A job that turns an export record into a file in the object store, in constant memory, and can "
            "be killed and run again.",
            "sequence": 2,
            "parallel_group": "build",
            "depends_on": ["export record"],
            "estimated_complexity": "high",
        },
        {
            "name": CURRENT,
            "description": "Rows must come from the reports replica in chunks, in the order the report shows, without a "
            "transaction that stays open for the whole export and without skipping or repeating rows when data changes "
            "meanwhile. The writer asks for the next chunk; never more than 2,000 rows in memory. The permission filter "
            "of the report page applies: take it from reports.permissions, do not copy it.",
            "sequence": 2,
            "parent": "worker",
            "files_likely_affected": ["exports/rows.py", "reports/query.py"],
            "acceptance": [
                "five million rows export with less than 64 MB resident growth",
                "rows inserted or deleted during the export lead to no skipped or repeated row among the others",
                "a column hidden by the permission filter is absent",
            ],
        },
        {
            "name": "write CSV and XLSX",
            "description": "Writers that take an iterator of rows and write to a multipart upload.",
            "sequence": 2,
            "parent": "worker",
        },
        {
            "name": "api",
            "description": "POST /v3/reports/<id>/exports, GET /v3/exports/<id>, limits per person and organisation.",
            "sequence": 2,
            "parallel_group": "build",
            "depends_on": ["export record"],
        },
        {
            "name": "interface",
            "description": "Button, progress, notification with the link.",
            "sequence": 2,
            "parallel_group": "build",
            "depends_on": ["export record"],
        },
        {
            "name": "load test",
            "description": "Five million rows on staging while the normal load runs.",
            "sequence": 3,
            "depends_on": ["worker", "api", "interface"],
        },
        {"name": "help page", "description": "How exports work, limits, Excel hints.", "sequence": 4},
    ],
}


def tell(telling: Telling) -> None:
    telling.begin(
        PLAN,
        name="Report exports",
        source_type="linear",
        source_ref="REP-318",
        source_content=REQUEST,
        max_parallel_tasks=4,
    )
    _record(telling)
    _others_begin(telling)
    _stream(telling)
    _others_go_on(telling)


def _record(telling: Telling) -> None:
    telling.start("export record")
    telling.note(
        "export record",
        "decision",
        "An export stores the report's query as JSON, frozen at the click, not a reference to the report",
        reason="editing the report while it exports must not change the file",
    )
    telling.note("export record", "progress", "Migration and model", "migrations/0093_exports.sql", "exports/models.py")
    telling.note(
        "export record",
        "decision",
        "States only move forward; a killed worker's export goes from running back to queued by its lease, nothing else",
    )
    telling.note(
        "export record", "complete", "Audit columns added, kept 400 days by the nightly job", "jobs/nightly.py"
    )
    telling.done(
        "export record",
        "Table exports (migration 0093) and exports/models.py: Export.query is frozen JSON, Export.take(worker) leases it "
        "for 60 s and Export.beat() renews. The worker must call beat() at least every 30 s. exports/models.py has "
        "Export.for_tests(rows=n) to make one with n rows behind it.",
        tests="tests/exports/test_models.py",
    )


def _others_begin(telling: Telling) -> None:
    telling.start("worker")
    telling.note(
        "worker", "decision", "Multipart upload with 8 MB parts; a retry begins a new upload and drops the old one"
    )
    telling.start("api")
    telling.note("api", "progress", "POST creates the record, limits counted in SQL", "api/v3/exports.py")
    telling.start("interface")
    telling.note("interface", "progress", "Button behind the flag", "web/src/report/ExportButton.tsx")
    telling.start("write CSV and XLSX")
    telling.note(
        "write CSV and XLSX",
        "decision",
        "XLSX through a streaming zip of our own rows XML, no library",
        reason="both libraries we tried keep shared strings in memory",
    )


def _stream(telling: Telling) -> None:
    name = CURRENT
    telling.plan(
        name,
        "Keyset pagination over the report's order plus the primary key; each chunk is its own short transaction on the "
        "replica, all chunks see the data as of the export's start through an xmin horizon column.",
        "Make reports.query build its SQL without a request object",
        "Take the permission filter from reports.permissions.visible_columns(person)",
        "Write rows(export): chunks of 2,000 by keyset, order by shown order plus id",
        "Nulls in the order columns: compare with coalesce as the page does",
        "Call export.beat() between chunks",
        "Property test: rows change between chunks, none of the others is skipped or repeated",
        "Memory test with five million rows, marked slow",
        files_to_modify=["reports/query.py"],
        files_to_create=["exports/rows.py", "tests/exports/test_rows.py"],
        context={
            "replica": "REPORTS_REPLICA_URL; staging copy has report 77 with 5.2 million rows",
            "run_tests": "pytest tests/exports -m 'not slow'",
            "agreed_with_interface": "progress is rows written, from Export.written, updated per chunk",
        },
    )
    telling.start(name)
    telling.note(
        name,
        "progress",
        "query.py takes a Viewer instead of the request; the page passes one",
        "reports/query.py",
        "reports/views.py",
        step=1,
    )
    telling.note(
        name,
        "progress",
        "visible_columns(viewer) is used by page and export",
        "reports/permissions.py",
        "exports/rows.py",
        step=2,
    )
    horizon = telling.note(
        name,
        "decision",
        "Snapshot by xmin horizon, so that all chunks see the data as of the start",
        reason="an export should be one moment in time",
    )
    telling.note(
        name,
        "error",
        "xmin is not usable on the replica: hot standby feedback is off and rows vanish under vacuum",
        detail="staging: 1,204 of 5.2 million rows missing after vacuum ran in the middle of an export",
    )
    telling.note(
        name,
        "decision",
        "No snapshot: an export is exact for rows that did not change; rows changed meanwhile may show either state. "
        "Product agreed (comment on REP-318)",
        supersedes=horizon,
        reason="the alternative is a transaction of 20 minutes on the replica",
    )
    telling.note(
        name,
        "recovery",
        "Keyset over (shown order, id) only; 5.2 million rows exported, none missing",
        "exports/rows.py",
        step=3,
    )
    telling.note(
        name,
        "progress",
        "Nulls: page sorts nulls last, keyset now compares (column is null, column, id)",
        "exports/rows.py",
        "tests/exports/test_rows.py",
        step=4,
    )
    telling.note(
        name,
        "error",
        "Property test finds a repeated row when the order column of a row behind the cursor is raised between chunks",
        example="order by amount; row 17 amount 10 already written, updated to 99, comes again at the end",
        seed="@reproduce_failure('6.150', b'AXicY2BkYGAAAAAQAAM=')",
    )


def _others_go_on(telling: Telling) -> None:
    telling.note(
        "api", "progress", "Limits answer 202 with place in line", "api/v3/exports.py", "tests/api/test_exports.py"
    )
    telling.note(
        "api", "error", "Counting running exports per organisation takes 300 ms without an index on (org_id, state)"
    )
    telling.note(
        "write CSV and XLSX",
        "progress",
        "CSV writer done, formula prefix tested; XLSX header row left",
        "exports/csv.py",
        "tests/exports/test_csv.py",
    )
    telling.note(
        "interface", "complete", "Notification links work", "web/src/report/ExportButton.tsx", "web/src/notify.ts"
    )
    telling.done(
        "interface",
        "Button, progress bar (polls GET /v3/exports/<id> every 3 s) and notification behind flag `exports`.",
    )
