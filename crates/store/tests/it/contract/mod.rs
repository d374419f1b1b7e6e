//! The contract of a store. These modules are compiled and run once for each database.

use super::database;

mod call_export;
mod calls;
mod clients;
mod content_checks;
mod grants;
mod keys;
mod many_writers;
mod processes;
mod replicas;
mod results;
mod retention;
mod round_trip;
mod servers;
mod sessions;
mod shared_rates;
mod slots;
mod source_servers;
mod turn_records;
