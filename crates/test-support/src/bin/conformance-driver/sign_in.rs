//! The OAuth scenarios: signs in as often as the server requires, up to a limit, and plays the browser.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, header};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::switchboard::Switchboard;
use crate::use_everything;

/// Maximum number of sign-ins per scenario.
const SIGN_INS: usize = 3;
/// How long the program may take to notice a sign-in and connect.
const PATIENCE: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(200);
/// The URL of the suite's client id metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

pub(crate) async fn run(
    url: &str,
    scenario: &str,
    version: &str,
    context: &Value,
) -> Result<(), Box<dyn Error>> {
    let switchboard = Switchboard::before(url, &settings(scenario, context))?;
    let done = if is_own_client(scenario) {
        use_everything(&switchboard.url, version, context).await
    } else {
        sign_in_and_use(&switchboard, version, context).await
    };
    switchboard.stop();
    done
}

/// Whether the scenario uses client credentials, without a sign-in.
fn is_own_client(scenario: &str) -> bool {
    scenario.starts_with("auth/client-credentials-")
}

fn settings(scenario: &str, context: &Value) -> String {
    // A JSON string is a valid YAML string.
    let named = |key: &str, name: &str| match &context[key] {
        Value::Null => None,
        value => Some(format!("{name}: {value}")),
    };
    let text = |key: &str| named(key, key);
    let grant = is_own_client(scenario).then(|| "grant: client_credentials".to_owned());
    let key = named("private_key_pem", "private_key");
    let algorithm = text("signing_algorithm");
    let document = format!("client_metadata_url: \"{DOCUMENT}\"");
    let document = (scenario == "auth/basic-cimd").then_some(document);
    let all = [grant, text("client_id"), text("client_secret"), key, algorithm, document];
    let all: Vec<_> = all.into_iter().flatten().collect();
    let required = is_own_client(scenario);
    format!(", required: {required}, auth: {{oauth: {{{}}}}}", all.join(", "))
}

async fn sign_in_and_use(
    switchboard: &Switchboard,
    version: &str,
    context: &Value,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..SIGN_INS {
        sign_in(switchboard).await?;
        if !is_connected(switchboard).await? {
            continue;
        }
        use_everything(&switchboard.url, version, context).await?;
        if !wants_sign_in(switchboard)? {
            return Ok(());
        }
    }
    Err("signing in did not help".into())
}

async fn sign_in(switchboard: &Switchboard) -> Result<(), Box<dyn Error>> {
    let mut login = switchboard
        .command()?
        .args(["auth", "login", "suite", "--no-browser"])
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = login.stdout.take().ok_or("the program has no output")?;
    let address = BufReader::new(stdout).lines().next();
    if let Some(address) = address {
        be_the_browser(&address?).await?;
    }
    if login.wait()?.success() { Ok(()) } else { Err("the sign-in failed".into()) }
}

async fn be_the_browser(address: &str) -> Result<(), Box<dyn Error>> {
    let browser = Client::builder().redirect(Policy::none()).no_proxy().build()?;
    let page = browser.get(address).send().await?;
    let back = page.headers().get(header::LOCATION).ok_or("the page leads nowhere")?;
    browser.get(back.to_str()?).send().await?.error_for_status()?;
    Ok(())
}

/// Waits until the server is ready or requires another sign-in.
async fn is_connected(switchboard: &Switchboard) -> Result<bool, Box<dyn Error>> {
    let base = switchboard.url.trim_end_matches("/mcp");
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let servers = switchboard.ask(&["server", "list", "--url", base])?;
        if servers["servers"][0]["state"] == "ready" {
            return Ok(true);
        }
        if wants_sign_in(switchboard)? {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
    Err("the server does not become ready".into())
}

fn wants_sign_in(switchboard: &Switchboard) -> Result<bool, Box<dyn Error>> {
    let status = switchboard.ask(&["auth", "status"])?;
    Ok(status["servers"][0]["state"] == "needs_sign_in")
}
