-- Accounts of a session (`auth.oauth.per: session`) end with it, however it ends.
CREATE TRIGGER grants_of_sessions AFTER DELETE ON sessions BEGIN
    DELETE FROM grants WHERE owner = 'session:' || OLD.id;
    DELETE FROM grant_needs WHERE owner = 'session:' || OLD.id;
END;

-- Those of sessions that have ended already.
DELETE FROM grants WHERE owner LIKE 'session:%' AND substr(owner, 9) NOT IN (SELECT id FROM sessions);
DELETE FROM grant_needs WHERE owner LIKE 'session:%' AND substr(owner, 9) NOT IN (SELECT id FROM sessions);
