//! Reads a configuration: parses a YAML file, applies overrides from the environment, expands variables and secret
//! files, validates everything, and produces a [`switchboard_model::Plan`].
//!
//! The crate is pure: text, environment and readers for secret files and the keyring are arguments. Errors are returned as
//! [`Problems`], each with a location and help, and without secrets.

mod clients;
mod coerce;
mod discovered;
mod duration;
mod edit;
mod effective;
mod emit;
mod expand;
mod exposure;
mod import;
mod keyring;
mod load;
mod merge;
mod overlay;
mod path;
mod place;
mod plan;
mod problem;
mod raw;
mod raw_agent;
mod raw_discovery;
mod raw_grant;
mod raw_provider;
mod raw_provider_auth;
mod raw_records;
mod raw_store;
mod raw_threat_protection;
mod raw_tls;
mod schema;
mod secret_line;
mod shape;
mod shape_words;
mod show;
mod source;
mod template;
mod toolset_draft;
mod tree;
mod yaml;

pub use clients::{
    API_KEY_VARIABLE, ClientEntry, ClientProgram, DEFAULT_MCP_URL, KeyUse, Laid, Reach, SameName,
    Unwritable, mcp_address, needs_key, with_scheme,
};
pub use discovered::{MergedServers, merge_discovered};
pub use edit::{
    ConfigEdit, ConfigText, EditRefusal, EntryList, is_fixed_or_hidden, overriding_variable,
    released_arguments, unified_diff,
};
pub use effective::{Loaded, Setting};
pub use exposure::{ExposureSource, parse_flag, resolve_exposure};
pub use import::{
    ImportNote, ImportScope, Imported, ImportedServer, ImportedTool, ServerPlace, import_servers,
};
pub use keyring::{KeyringFault, KeyringReader};
pub use load::{ConfigInput, SourceFile, load};
pub use merge::{Merged, PresentServer, merge_into};
pub use place::SourceLocation;
pub use problem::{ConfigProblem, Problems, Severity, Snippet};
pub use schema::json_schema;
pub use template::{escape as escape_references, has_reference};
pub use toolset_draft::{DraftSet, DraftTool, ToolsetDraft};
