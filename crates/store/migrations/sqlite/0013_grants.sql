-- The results of sign-ins: tokens, and the client that they belong to. One row for each purpose (`server:NAME`,
-- `provider:NAME/CREDENTIAL`), owner (`board`, a person, `session:ID`) and authorization server.
CREATE TABLE grants (
    purpose           TEXT    NOT NULL,
    owner             TEXT    NOT NULL,
    issuer            TEXT    NOT NULL,
    -- The key that encrypts `content`; NULL if it is in clear text.
    key_id            TEXT,
    content           BLOB    NOT NULL,
    -- Grows with every change of `content`.
    version           INTEGER NOT NULL,
    -- Until when one process may renew the tokens; others wait for the version to change.
    renewing_until_ms INTEGER NOT NULL DEFAULT 0,
    updated_at_ms     INTEGER NOT NULL,
    PRIMARY KEY (purpose, owner, issuer)
) STRICT;

CREATE INDEX grants_by_owner ON grants (owner);

-- Grants that wait for a sign-in: why, and what it has to request.
CREATE TABLE grant_needs (
    purpose TEXT NOT NULL,
    owner   TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (purpose, owner)
) STRICT;

INSERT INTO grants (purpose, owner, issuer, content, version, updated_at_ms)
    SELECT 'server:' || server, 'board', issuer, CAST(content AS BLOB), 1, updated_at_ms FROM oauth_grants;
INSERT INTO grant_needs (purpose, owner, content)
    SELECT 'server:' || server, 'board', content FROM oauth_wanted;

DROP TABLE oauth_grants;
DROP TABLE oauth_wanted;
