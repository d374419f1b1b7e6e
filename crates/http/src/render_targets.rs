//! Names of renderings in queries.

use switchboard_render::{Provider, UnknownRenderTarget};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use crate::problem::{ProblemResponse, bad_query};

/// The schema of a provider name.
pub(crate) struct ProviderName;

impl utoipa::PartialSchema for ProviderName {
    fn schema() -> RefOr<Schema> {
        let names = Provider::ALL.map(Provider::as_str);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl utoipa::ToSchema for ProviderName {}

/// The schema of a list of provider names.
pub(crate) struct ProviderNames;

impl utoipa::PartialSchema for ProviderNames {
    fn schema() -> RefOr<Schema> {
        ArrayBuilder::new().items(ProviderName::schema()).max_items(Some(16)).into()
    }
}

impl utoipa::ToSchema for ProviderNames {}

/// The providers that a query names, separated by commas; `usual` if it names none.
pub(crate) fn providers_of(
    names: Option<&str>,
    usual: &[Provider],
) -> Result<Vec<Provider>, ProblemResponse> {
    let names = names.unwrap_or_default().split(',').map(str::trim);
    let mut providers = Vec::new();
    for name in names.filter(|name| !name.is_empty()) {
        let provider = name.parse();
        let provider: Provider =
            provider.map_err(|unknown: UnknownRenderTarget| bad_query(unknown.to_string()))?;
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    Ok(if providers.is_empty() { usual.to_vec() } else { providers })
}
