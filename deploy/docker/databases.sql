-- Runs when the volume of PostgreSQL is made; `legacy` exists then.
CREATE DATABASE static;
CREATE DATABASE dynamic;
