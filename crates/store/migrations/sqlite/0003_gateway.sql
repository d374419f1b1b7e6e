-- Whoever may ask: only a keyed hash of a key is here. Revoked keys stay, so that what they did keeps a name.
CREATE TABLE api_keys (
    id              TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    role            TEXT    NOT NULL,
    hash            BLOB    NOT NULL UNIQUE,
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER,
    revoked_at_ms   INTEGER,
    expires_at_ms   INTEGER
) STRICT;

-- A name is free again once its key is revoked.
CREATE UNIQUE INDEX api_keys_by_name ON api_keys (name) WHERE revoked_at_ms IS NULL;

-- The id of a `client` is a bearer secret, so a hash stands in its place. The kind is part of the key: a name that
-- somebody chooses for an endpoint never meets the hash of a client.
CREATE TABLE gateway_sessions (
    id              TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    PRIMARY KEY (id, kind)
) STRICT;

CREATE INDEX gateway_sessions_by_owner ON gateway_sessions (owner, kind);
CREATE INDEX gateway_sessions_by_age ON gateway_sessions (kind, last_seen_at_ms);

-- Random bytes that are this installation's own.
CREATE TABLE installation_secrets (
    name   TEXT NOT NULL PRIMARY KEY,
    secret BLOB NOT NULL
) STRICT;
