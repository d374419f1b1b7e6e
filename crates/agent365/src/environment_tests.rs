//! Each variable of the tables in the package's documentation.

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::from_lookup(lookup(variables))
}

fn lookup(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    move |name| variables.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone())
}

#[track_caller]
fn check_kind(variables: &[(&str, &str)], kind: EnvironmentKind, by: Option<&str>) {
    let environment = environment(variables);
    assert_eq!((environment.kind(), environment.kind_variable()), (kind, by), "{variables:?}");
    assert_eq!(environment.is_development(), kind == EnvironmentKind::Development);
}

#[test]
fn environment_development_takes_the_manifest() {
    for word in ["Development", "development", "DEVELOPMENT", " Development "] {
        check_kind(&[("ENVIRONMENT", word)], EnvironmentKind::Development, Some("ENVIRONMENT"));
    }
}

#[test]
fn environment_of_any_other_name_takes_the_gateway() {
    for word in ["Production", "Staging", "dev", "Developmental", "0"] {
        check_kind(&[("ENVIRONMENT", word)], EnvironmentKind::Production, Some("ENVIRONMENT"));
    }
}

#[test]
fn environment_is_production_by_default() {
    check_kind(&[], EnvironmentKind::Production, None);
    check_kind(&[("ENVIRONMENT", "")], EnvironmentKind::Production, None);
}

#[test]
fn environment_is_development_by_default_with_the_compatibility_switch() {
    let by = |variables: &[(&str, &str)]| {
        Environment::with_default(DefaultEnvironment::Development, lookup(variables)).kind()
    };
    assert_eq!(by(&[]), EnvironmentKind::Development);
    assert_eq!(by(&[("ENVIRONMENT", "Production")]), EnvironmentKind::Production);
}

#[test]
fn the_first_variable_that_is_not_empty_decides() {
    let all = KIND_VARIABLES;
    for (at, variable) in all.into_iter().enumerate() {
        let mut variables: Vec<_> = all.iter().map(|it| (*it, "Production")).collect();
        for (_, value) in &mut variables[..at] {
            *value = "";
        }
        variables[at].1 = "Development";
        check_kind(&variables, EnvironmentKind::Development, Some(variable));
    }
    let order =
        ["PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT"];
    assert_eq!(all, order);
}

#[test]
fn the_variables_of_addresses_and_names_are_read() {
    let environment = environment(&[
        ("MCP_BASE_URL", "https://base.test"),
        ("MCP_PLATFORM_ENDPOINT", "https://platform.test"),
        ("MCP_PLATFORM_AUTHENTICATION_SCOPE", "app/.default"),
        ("AGENT365_APPLICATION_NAME", "my-agent"),
    ]);
    assert_eq!(environment.mcp_base_url().as_deref(), Some("https://base.test"));
    assert_eq!(environment.platform_endpoint().as_deref(), Some("https://platform.test"));
    assert_eq!(environment.platform_scope(), "app/.default");
    assert_eq!(environment.application_name().as_deref(), Some("my-agent"));
}

#[test]
fn variables_that_are_absent_or_blank_have_their_defaults() {
    let blank = [
        ("MCP_BASE_URL", ""),
        ("MCP_PLATFORM_ENDPOINT", " "),
        ("MCP_PLATFORM_AUTHENTICATION_SCOPE", ""),
        ("AGENT365_APPLICATION_NAME", ""),
        ("BEARER_TOKEN", ""),
        ("BEARER_TOKEN_MAIL", ""),
    ];
    for environment in [environment(&[]), environment(&blank)] {
        assert_eq!(environment.mcp_base_url(), None);
        assert_eq!(environment.platform_endpoint(), None);
        assert_eq!(environment.platform_scope(), "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default");
        assert_eq!(environment.application_name(), None);
        assert_eq!(environment.shared_token(), None);
        assert_eq!(environment.server_token("mail"), None);
    }
}

#[test]
fn bearer_token_variables_are_named_after_the_server() {
    let environment = environment(&[
        ("BEARER_TOKEN", "shared"),
        ("BEARER_TOKEN_MAIL", "of mail"),
        ("BEARER_TOKEN_MY_FILES", "of files"),
    ]);
    assert_eq!(environment.shared_token(), Some(Secret::new("shared")));
    for (server, variable, token) in [
        ("mail", "BEARER_TOKEN_MAIL", "of mail"),
        ("Mail", "BEARER_TOKEN_MAIL", "of mail"),
        ("my files", "BEARER_TOKEN_MY_FILES", "of files"),
        ("my-files", "BEARER_TOKEN_MY_FILES", "of files"),
    ] {
        let expected = Some((variable.to_owned(), Secret::new(token)));
        assert_eq!(environment.server_token(server), expected, "{server}");
    }
    assert_eq!(environment.server_token("mails"), None);
}

#[test]
fn an_environment_is_shown_without_its_variables() {
    let environment = environment(&[("BEARER_TOKEN", "s3cret-token")]);
    assert!(!format!("{environment:?}").contains("s3cret"));
}
