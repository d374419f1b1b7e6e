-- Times are milliseconds since 1970, durations nanoseconds. A migration that has been released is never
-- edited again: its checksum is part of every database that it made.

-- What a server had when it was last listed. A server without tools has a row here and none below.
CREATE TABLE remembered_servers (
    server     TEXT    NOT NULL PRIMARY KEY,
    seen_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE remembered_tools (
    server        TEXT    NOT NULL REFERENCES remembered_servers (server) ON DELETE CASCADE,
    position      INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    title         TEXT,
    description   TEXT,
    input_schema  TEXT    NOT NULL,
    output_schema TEXT,
    annotations   TEXT,
    PRIMARY KEY (server, position)
) STRICT;

-- Which era a server spoke when it was last asked; the fingerprint tells whether it is still the same place.
CREATE TABLE era_verdicts (
    server        TEXT    NOT NULL PRIMARY KEY,
    fingerprint   TEXT    NOT NULL,
    era           TEXT    NOT NULL,
    decided_at_ms INTEGER NOT NULL
) STRICT;

-- One row: the last catalog and its revision.
CREATE TABLE catalog_revision (
    singleton   INTEGER NOT NULL PRIMARY KEY CHECK (singleton = 1),
    revision    INTEGER NOT NULL,
    fingerprint TEXT    NOT NULL
) STRICT;

-- `tool` is the whole canonical name; `server` says where it divides.
CREATE TABLE calls (
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
    result_handle   TEXT
) STRICT;

CREATE INDEX calls_by_age ON calls (started_at_ms, id);

-- Results too large to be answered inline. No reference to `calls`: a result is kept before its call is
-- recorded, and either may be pruned first.
CREATE TABLE results (
    handle     TEXT    NOT NULL PRIMARY KEY,
    call_id    TEXT    NOT NULL,
    total      INTEGER NOT NULL,
    kept_at_ms INTEGER NOT NULL
) STRICT;

-- The body in parts, so that reading a slice touches only the parts that it crosses.
CREATE TABLE result_parts (
    handle TEXT    NOT NULL REFERENCES results (handle) ON DELETE CASCADE,
    start  INTEGER NOT NULL,
    length INTEGER NOT NULL,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (handle, start)
) STRICT;
