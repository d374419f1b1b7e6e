//! Why a model gave no answer: whose fault it is, and what to do.

use std::fmt;
use std::time::Duration;

/// A request that a provider did not answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct ModelFault {
    pub kind: FaultKind,
    /// What happened, in the provider's own words where it has some. Never a secret.
    pub message: String,
    /// The status of the answer, where there was one.
    pub status: Option<u16>,
    /// The provider's own word for it.
    pub code: Option<String>,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// The id by which the provider finds the request in its logs.
    pub request_id: Option<String>,
}

impl ModelFault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            request_id: None,
        }
    }
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// No credentials, or wrong ones.
    Credentials,
    /// The account may not do this.
    Forbidden,
    /// The account has used up what it may use.
    Quota,
    /// Too many requests just now.
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The provider does not know the model, or the address is wrong.
    NotFound,
    /// The conversation is longer than the model can read.
    TooLong,
    /// The provider does not take the request.
    BadRequest,
    /// A filter of the provider stopped it.
    Refused,
    /// The provider failed.
    Provider,
    /// It could not be reached.
    Unreachable,
    /// It was silent, or took, for too long.
    Timeout,
    /// The answer broke off.
    Interrupted,
    /// The answer is none that its format allows.
    Unreadable,
    /// The answer is larger than what we take.
    TooLarge,
    /// The model called tools in a way that the provider itself refused.
    MalformedCall,
    /// The model called a tool that the provider does not know.
    UnexpectedCall,
}

/// Who has to do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// Who configured it.
    You,
    /// The provider; it may be better soon.
    Provider,
    /// The network between.
    Network,
    /// The model; it may do better when it is asked again.
    Model,
    /// A fault of ours.
    Switchboard,
}

impl Blame {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Provider => "provider",
            Self::Network => "network",
            Self::Model => "model",
            Self::Switchboard => "switchboard",
        }
    }
}

impl FaultKind {
    /// The word that events and JSON show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Forbidden => "forbidden",
            Self::Quota => "quota",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::NotFound => "not_found",
            Self::TooLong => "too_long",
            Self::BadRequest => "bad_request",
            Self::Refused => "refused",
            Self::Provider => "provider_error",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too_large",
            Self::MalformedCall => "malformed_call",
            Self::UnexpectedCall => "unexpected_call",
        }
    }

    /// Whose fault it is.
    pub fn blame(self) -> Blame {
        match self {
            Self::Credentials | Self::Forbidden | Self::Quota | Self::NotFound | Self::TooLong => {
                Blame::You
            }
            Self::RateLimited
            | Self::Overloaded
            | Self::Provider
            | Self::Refused
            | Self::Unreadable
            | Self::TooLarge => Blame::Provider,
            Self::Unreachable | Self::Timeout | Self::Interrupted => Blame::Network,
            Self::MalformedCall | Self::UnexpectedCall => Blame::Model,
            Self::BadRequest => Blame::Switchboard,
        }
    }

    /// Whether the same request may do better when it is sent again.
    pub fn may_pass(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Provider
            | Self::Unreachable
            | Self::Timeout
            | Self::Interrupted
            | Self::Unreadable
            | Self::MalformedCall
            | Self::UnexpectedCall => true,
            Self::Credentials
            | Self::Forbidden
            | Self::Quota
            | Self::NotFound
            | Self::TooLong
            | Self::BadRequest
            | Self::Refused
            | Self::TooLarge => false,
        }
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Credentials => {
                "check the key of this provider: its environment variable, or `providers` in the configuration"
            }
            Self::Forbidden => {
                "the account may not use this model or feature: ask who owns it, or choose another model"
            }
            Self::Quota => {
                "the account has used up its quota: wait until it is filled again, or choose another provider"
            }
            Self::RateLimited => "wait a moment and send the message again",
            Self::Overloaded | Self::Provider => {
                "the provider has a problem: send the message again later, or choose another provider"
            }
            Self::NotFound => "check the model and the address of the provider",
            Self::TooLong => "begin a new session, or leave messages out with an overlay",
            Self::BadRequest => {
                "the provider did not take the request: its words say why; if they make no sense to you, report them to us"
            }
            Self::Refused => "the provider's filter stopped this: say it in another way",
            Self::Unreachable => "check the network, and the address of the provider",
            Self::Timeout => "send the message again, or raise the timeouts of the provider",
            Self::Interrupted => "send the message again",
            Self::Unreadable => "check that the address is the one of this kind of provider",
            Self::TooLarge => "ask for less at once",
            Self::MalformedCall | Self::UnexpectedCall => {
                "send the message again, or choose another model"
            }
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
