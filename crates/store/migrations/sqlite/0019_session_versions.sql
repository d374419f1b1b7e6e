-- Each write of a session adds one. Who writes names the version that it has seen, so that no process overwrites what
-- another one stored in between.
ALTER TABLE sessions ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
