//! Model providers: configuration, credentials, requests, and the stream of a response.
//!
//! [`Providers`] has the configured providers and the built-in ones. [`ProviderEndpoint::ask`] sends one request, once:
//! the caller decides on retries. It returns a [`ModelStream`] of canonical events; `switchboard-wire` parses the
//! bytes. [`ProviderEndpoint::pass`] sends a request that is already in the provider's format and returns its bytes.

mod accounts;
mod answer;
mod asked_by;
mod built_in;
mod code_assist;
mod credential;
mod endpoint;
mod http_answer;
mod http_client;
mod model_list;
mod noted_models;
mod open_sign_ins;
mod passed_headers;
mod passed_request;
#[cfg(test)]
mod passed_request_tests;
mod providers;
mod request_headers;
mod stream;
mod token_file;

pub use accounts::{
    BegunSignIn, CredentialState, ProviderAccount, ProviderAccountError, provider_accounts,
};
pub use endpoint::ProviderEndpoint;
pub use passed_headers::headers_for_provider;
pub use passed_request::{PassedFault, PassedRequest, PassedResponse};
pub use providers::{ProviderInfo, ProviderOrigin, Providers, UnknownProvider};
pub use stream::ModelStream;
pub use switchboard_wire::ListedModel;
pub use token_file::token_file_problem;

#[cfg(test)]
mod code_assist_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod transport_tests;
