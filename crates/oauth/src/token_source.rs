//! Where the tokens of an account come from.

use switchboard_model::{DescribedIssuer, OAuthSettings};

/// Where tokens come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// The authorization server that an MCP server names.
    Server(OAuthSettings),
    /// An issuer that the configuration describes.
    Described(Box<DescribedIssuer>),
}
