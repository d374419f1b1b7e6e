//! Names of renderings in queries.

use switchboard_render::{Provider, UnknownRenderTarget};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use crate::problem::{ProblemResponse, bad_query};

/// How many names a list in a query may have.
pub(crate) const MAX_NAMES: usize = 16;

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
        ArrayBuilder::new().items(ProviderName::schema()).max_items(Some(MAX_NAMES)).into()
    }
}

impl utoipa::ToSchema for ProviderNames {}

/// The providers that a query names, separated by commas; `usual` if it names none.
pub(crate) fn providers_of(
    names: Option<&str>,
    usual: &[Provider],
) -> Result<Vec<Provider>, ProblemResponse> {
    let names = listed("providers", names)?;
    let mut providers = Vec::new();
    for name in names {
        let provider = name.parse();
        let provider: Provider =
            provider.map_err(|unknown: UnknownRenderTarget| bad_query(unknown.to_string()))?;
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    Ok(if providers.is_empty() { usual.to_vec() } else { providers })
}

/// The names in a parameter of the query, separated by commas.
pub(crate) fn listed<'a>(
    parameter: &str,
    names: Option<&'a str>,
) -> Result<Vec<&'a str>, ProblemResponse> {
    let names = names.unwrap_or_default().split(',').map(str::trim);
    let names: Vec<_> = names.filter(|name| !name.is_empty()).take(MAX_NAMES + 1).collect();
    if names.len() > MAX_NAMES {
        return Err(bad_query(format!("`{parameter}` has more than {MAX_NAMES} names")));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_at_most_as_many_names_as_the_document_says() {
        let names = |count: usize| vec!["mcp"; count].join(",");
        assert_eq!(providers_of(Some(&names(MAX_NAMES)), &[]).ok(), Some(vec![Provider::Mcp]));
        assert!(providers_of(Some(&names(MAX_NAMES + 1)), &[]).is_err());
        assert_eq!(providers_of(Some(" , "), &[Provider::Mcp]).ok(), Some(vec![Provider::Mcp]));
    }
}
