//! The way to models: who can be asked, where they are, how to be let in, and the stream of an answer.
//!
//! [`Providers`] has the entries of the configuration and those that need none. [`ProviderEndpoint::ask`] sends one
//! request, once: whether a fault is worth another try is decided elsewhere. What comes back is a [`ModelStream`] of
//! canonical events; what the bytes mean is the business of `switchboard-wire`.

mod answer;
mod built_in;
mod code_assist;
mod endpoint;
mod http_answer;
mod http_client;
mod providers;
mod request_headers;
mod stream;

pub use endpoint::ProviderEndpoint;
pub use providers::{ProviderInfo, ProviderOrigin, Providers, UnknownProvider};
pub use stream::ModelStream;

#[cfg(test)]
mod code_assist_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod transport_tests;
