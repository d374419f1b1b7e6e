-- Who made a call and what admitted it. The sequence number is the order in which records were written: a call that began
-- early and ended late comes after the ones that ended before it, so that an export can be continued without gaps.
CREATE TABLE calls_in_sequence (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
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
    session         TEXT,
    principal       TEXT,
    client          TEXT,
    person          TEXT,
    owner           TEXT,
    key_name        TEXT,
    client_version  TEXT,
    agent           TEXT,
    configured      TEXT,
    mode            TEXT,
    policy          TEXT
) STRICT;

INSERT INTO calls_in_sequence (id, started_at_ms, face, server, tool, requested, revision, argument_digest, outcome, message,
                               wait_ns, run_ns, result_bytes, result_handle, session, principal, client)
    SELECT id, started_at_ms, face, server, tool, requested, revision, argument_digest, outcome, message,
           wait_ns, run_ns, result_bytes, result_handle, session, principal, client FROM calls ORDER BY id;
DROP TABLE calls;
ALTER TABLE calls_in_sequence RENAME TO calls;

-- Arguments and results of calls of tools that the configuration says to keep, without secrets and cut at a limit.
CREATE TABLE call_contents (
    id             TEXT    NOT NULL PRIMARY KEY,
    arguments_text TEXT,
    arguments_size INTEGER,
    arguments_cut  INTEGER,
    result_text    TEXT,
    result_size    INTEGER,
    result_cut     INTEGER,
    stored_bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
