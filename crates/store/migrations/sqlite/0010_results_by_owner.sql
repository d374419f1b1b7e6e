-- Whose result it is: the session, or the kind of caller, that it counts for.
ALTER TABLE results ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX results_by_owner ON results (owner, kept_at_ms, handle);
