//! A token that another program keeps in a file.

use std::path::PathBuf;

/// A JSON file with a token that another program keeps. It is read and never written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    /// A path that begins with `~/` is below the home directory.
    pub path: PathBuf,
    /// The JSON pointer of the access token.
    pub access_token: String,
    /// The JSON pointer of the time at which the token expires: seconds or milliseconds since 1970, or RFC 3339.
    pub expires_at: Option<String>,
    /// The JSON pointer of the account id.
    pub account_id: Option<String>,
}
