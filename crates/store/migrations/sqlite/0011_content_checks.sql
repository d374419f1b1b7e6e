-- Content checks that were not passed, and chat messages that other agents sent. Never their content.
CREATE TABLE content_checks (
    id           TEXT PRIMARY KEY,
    at_ms        INTEGER NOT NULL,
    hook         TEXT NOT NULL,
    verdict      TEXT NOT NULL,
    blocked      INTEGER NOT NULL,
    reason       TEXT,
    principal    TEXT,
    conversation TEXT,
    message      TEXT NOT NULL,
    server       TEXT,
    tool         TEXT,
    messages     INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    took_ns      INTEGER NOT NULL
) STRICT;
