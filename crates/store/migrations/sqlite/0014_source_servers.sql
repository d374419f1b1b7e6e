-- The last known servers of each source of servers, for the next run. `servers` is a JSON array. A source whose settings name
-- another place or another agent has another fingerprint.
CREATE TABLE source_servers (
    source      TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    servers     TEXT NOT NULL,
    seen_at_ms  INTEGER NOT NULL
) STRICT;
