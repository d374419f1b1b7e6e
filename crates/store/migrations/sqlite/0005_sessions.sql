-- Sessions of every kind: what is switched in them, and what they saw last. `gateway_sessions` keeps the connections of
-- legacy clients from here on; the session of such a client is here, under an id that lets nobody in.
CREATE TABLE sessions (
    id              TEXT    NOT NULL PRIMARY KEY,
    kind            TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    title           TEXT,
    provider        TEXT,
    model           TEXT,
    -- What is chosen, own servers, earlier names: JSON that only sessions understand.
    state           TEXT    NOT NULL,
    tools_revision  INTEGER NOT NULL,
    -- The tools that were seen last; sessions that see the same share them.
    snapshot        TEXT,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_by_owner ON sessions (owner, created_at_ms, id);

-- Tools as a session sees them, under the digest of what is listed.
CREATE TABLE tool_snapshots (
    digest TEXT NOT NULL PRIMARY KEY,
    tools  TEXT NOT NULL
) STRICT;

-- The messages of a session in their order.
CREATE TABLE session_messages (
    session  TEXT    NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message  TEXT    NOT NULL,
    PRIMARY KEY (session, position)
) STRICT;

INSERT INTO sessions (id, kind, owner, state, tools_revision, created_at_ms, updated_at_ms)
    SELECT id, kind, owner, state, 1, created_at_ms, last_seen_at_ms FROM gateway_sessions WHERE kind <> 'client';
DELETE FROM gateway_sessions WHERE kind <> 'client';
-- The session that a client belongs to.
ALTER TABLE gateway_sessions ADD COLUMN session TEXT;

-- The session in which a call was made.
ALTER TABLE calls ADD COLUMN session TEXT;
