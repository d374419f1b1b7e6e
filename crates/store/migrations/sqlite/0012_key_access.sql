-- The person who uses a key, and what the key may use, as JSON. NULL: no named person, and everything.
ALTER TABLE api_keys ADD COLUMN user_label TEXT;
ALTER TABLE api_keys ADD COLUMN access TEXT;
