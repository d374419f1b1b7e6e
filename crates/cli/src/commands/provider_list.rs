//! `provider list`: shows the LLM providers.

use std::process::ExitCode;

use comfy_table::Cell;
use switchboard_api::{ProviderList, ProviderView};
use switchboard_http::present;
use switchboard_providers::Providers;

use crate::args::Globals;
use crate::embedded::load_config;
use crate::failure::Failure;
use crate::output::{Output, cell, harmless};
use crate::remote::Remote;

pub(crate) async fn run(globals: &Globals, output: Output) -> Result<ExitCode, Failure> {
    let list: ProviderList = if let Some(url) = &globals.url {
        Remote::new(url)?.get(&["providers"], &[]).await?
    } else {
        let plan = load_config(globals, output)?.plan;
        present::providers(&Providers::new(&plan.providers, &|name| std::env::var(name).ok()))
    };
    if output.is_json() {
        output.json(&list);
    } else {
        let header = ["provider", "kind", "model", "strategy", "credentials", "from", "address"];
        output.table(&header, list.providers.iter().map(row).collect());
    }
    Ok(ExitCode::SUCCESS)
}

fn row(provider: &ProviderView) -> Vec<Cell> {
    let text = |text: &Option<String>| harmless(text.as_deref().unwrap_or("-"));
    let credentials = match provider.auth.as_deref() {
        Some("oauth") => "sign-in",
        Some("token_file") => "token file",
        _ if provider.has_credentials => "yes",
        _ => "no",
    };
    let cells = [
        harmless(&provider.name),
        provider.kind.clone(),
        text(&provider.model),
        provider.strategy.clone(),
        credentials.to_owned(),
        provider.source.clone(),
        text(&provider.base_url),
    ];
    cells.map(cell).to_vec()
}
