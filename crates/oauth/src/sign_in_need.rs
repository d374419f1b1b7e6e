//! Why a sign-in is required, and what it must request.

use serde::{Deserialize, Serialize};

/// Why a sign-in is required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInCause {
    /// Nobody has signed in yet.
    #[default]
    NotSignedIn,
    /// The server refuses the token, or the authorization server the refresh token.
    Refused,
    /// The server demands scopes that were not requested.
    MoreScopes,
    /// The token has expired, and there is no refresh token.
    Expired,
    /// The server names another authorization server than the one of the last sign-in.
    IssuerChanged,
}

impl SignInCause {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSignedIn => "not_signed_in",
            Self::Refused => "refused",
            Self::MoreScopes => "more_scopes",
            Self::Expired => "expired",
            Self::IssuerChanged => "issuer_changed",
        }
    }

    /// The cause in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NotSignedIn => "nobody has signed in",
            Self::Refused => "the sign-in is no longer accepted",
            Self::MoreScopes => "more scopes are demanded",
            Self::Expired => "the token has expired and cannot be renewed",
            Self::IssuerChanged => "the server names another authorization server",
        }
    }
}

/// The need for a sign-in, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignInNeed {
    /// The server's `WWW-Authenticate` challenge.
    pub(crate) challenge: Option<String>,
    /// Scopes to request in addition to those that the server names at first.
    pub(crate) scopes: Vec<String>,
    #[serde(default)]
    pub(crate) cause: SignInCause,
}

impl SignInNeed {
    pub(crate) fn read(kept: &str) -> Option<Self> {
        serde_json::from_str(kept).ok()
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_of_an_earlier_version_is_read() {
        let read = SignInNeed::read(r#"{"challenge":"Bearer","scopes":["a"]}"#).unwrap();
        assert_eq!((read.cause, read.scopes), (SignInCause::NotSignedIn, vec!["a".to_owned()]));
        for cause in [SignInCause::Refused, SignInCause::IssuerChanged] {
            let need = SignInNeed { cause, ..SignInNeed::default() };
            assert!(need.write().contains(cause.as_str()));
            assert_eq!(SignInNeed::read(&need.write()), Some(need));
        }
    }
}
