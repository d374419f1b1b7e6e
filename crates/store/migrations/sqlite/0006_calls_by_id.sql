-- The id of a call begins with the time at which it came in, so one order serves all: records are written at the end of
-- one tree instead of into three.
CREATE TABLE calls_by_id (
    id              TEXT    NOT NULL PRIMARY KEY,
    started_at_ms   INTEGER NOT NULL,
    face            TEXT    NOT NULL,
    server          TEXT,
    tool            TEXT,
    requested       TEXT    NOT NULL,
    revision        INTEGER NOT NULL,
    argument_digest TEXT    NOT NULL,
    outcome         TEXT    NOT NULL,
    message         TEXT,
    wait_ns         INTEGER NOT NULL,
    run_ns          INTEGER NOT NULL,
    result_bytes    INTEGER NOT NULL,
    result_handle   TEXT,
    session         TEXT
) STRICT, WITHOUT ROWID;

INSERT INTO calls_by_id (id, started_at_ms, face, server, tool, requested, revision, argument_digest, outcome, message,
                         wait_ns, run_ns, result_bytes, result_handle, session)
    SELECT id, started_at_ms, face, server, tool, requested, revision, argument_digest, outcome, message,
           wait_ns, run_ns, result_bytes, result_handle, session FROM calls;
DROP TABLE calls;
ALTER TABLE calls_by_id RENAME TO calls;
