//! Errors of model requests: kind, responsible party, advice.

use std::fmt;
use std::time::Duration;

/// A model request that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct ModelFault {
    pub kind: FaultKind,
    /// What happened, in the provider's own words if it gave any. Contains no secrets.
    pub message: String,
    /// The HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// The provider's own error code.
    pub code: Option<String>,
    /// The time after which the provider accepts another request.
    pub retry_after: Option<Duration>,
    /// The provider's request id, for its support and logs.
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

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Credentials are missing or wrong.
    Credentials,
    /// A person must sign in: there is no token, or it has ended and cannot be renewed.
    SignIn,
    /// The account is not permitted to do this.
    Forbidden,
    /// The quota of the account is used up.
    Quota,
    /// Too many requests in a short time.
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The model is unknown to the provider, or the address is wrong.
    NotFound,
    /// The conversation is longer than the model's context window.
    TooLong,
    /// The provider rejected the request as invalid.
    BadRequest,
    /// The model has no native tool calls, and the strategy is `native`.
    NoNativeTools,
    /// A content filter of the provider stopped the request or the answer.
    Refused,
    /// An internal error of the provider.
    Provider,
    /// The connection failed.
    Unreachable,
    /// No data arrived in time, or the response took too long.
    Timeout,
    /// The response ended before it was complete.
    Interrupted,
    /// The response is not valid in its format.
    Unreadable,
    /// The response exceeds the size limit.
    TooLarge,
    /// The provider rejected a tool call of the model as malformed.
    MalformedCall,
    /// The model called a tool that was not declared.
    UnexpectedCall,
    /// A content check did not let the conversation go to the model.
    Blocked,
}

/// The party that has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The operator who configured the provider.
    You,
    /// The provider; the failure may be temporary.
    Provider,
    /// The network between Switchboard and the provider.
    Network,
    /// The model; another attempt may succeed.
    Model,
    /// Switchboard: the failure is a bug in it.
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
    /// The identifier in events and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::SignIn => "needs_sign_in",
            Self::Forbidden => "forbidden",
            Self::Quota => "quota",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::NotFound => "not_found",
            Self::TooLong => "too_long",
            Self::BadRequest => "bad_request",
            Self::NoNativeTools => "no_native_tools",
            Self::Refused => "refused",
            Self::Provider => "provider_error",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too_large",
            Self::MalformedCall => "malformed_call",
            Self::UnexpectedCall => "unexpected_call",
            Self::Blocked => "blocked",
        }
    }

    /// The party that has to act.
    pub fn blame(self) -> Blame {
        match self {
            Self::Credentials
            | Self::SignIn
            | Self::Forbidden
            | Self::Quota
            | Self::NotFound
            | Self::TooLong
            | Self::Blocked
            | Self::NoNativeTools => Blame::You,
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

    /// Whether the same request may succeed when it is repeated.
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
            | Self::SignIn
            | Self::Forbidden
            | Self::Quota
            | Self::NotFound
            | Self::TooLong
            | Self::BadRequest
            | Self::NoNativeTools
            | Self::Refused
            | Self::TooLarge
            | Self::Blocked => false,
        }
    }

    /// What the user can do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Credentials => {
                "check the key of this provider: its environment variable, or `providers` in the configuration"
            }
            Self::SignIn => {
                "sign in as the message says; `switchboard auth status` shows all sign-ins"
            }
            Self::Forbidden => {
                "the account may not use this model or feature: ask its owner for access, or choose another model"
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
                "the provider rejected the request: its message says why; if the message does not help, report it as a bug"
            }
            Self::NoNativeTools => {
                "use `strategy: react`, in the message, the session or the provider, or choose another model"
            }
            Self::Refused => "the provider's content filter stopped this: rephrase the message",
            Self::Unreachable => "check the network, and the address of the provider",
            Self::Timeout => "send the message again, or raise the timeouts of the provider",
            Self::Interrupted => "send the message again",
            Self::Unreadable => {
                "check that the provider's address belongs to this kind of provider"
            }
            Self::TooLarge => "ask for less at once",
            Self::Blocked => {
                "the threat protection of this board stopped the turn: rephrase or edit what it refused; if it gave no verdict, send the message again later, or ask whoever runs the board"
            }
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
