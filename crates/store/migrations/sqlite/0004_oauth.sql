-- What sign-ins at upstream servers left: tokens and the client that they belong to. Clear text, as every secret of
-- this file, which only its owner can read. One per authorization server: tokens of one mean nothing to another.
CREATE TABLE oauth_grants (
    server        TEXT    NOT NULL,
    issuer        TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (server, issuer)
) STRICT;

-- Servers that wait for a sign-in, and what it has to ask for.
CREATE TABLE oauth_wanted (
    server  TEXT NOT NULL PRIMARY KEY,
    content TEXT NOT NULL
) STRICT;
