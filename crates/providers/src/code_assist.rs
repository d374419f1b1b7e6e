//! The Google Cloud project for Code Assist: the configured one, else the one that Google assigns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_chat::{FaultKind, ModelFault};
use switchboard_model::{ProviderPlan, Secret};
use switchboard_wire::{Answer, fault};
use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::ProviderEndpoint;
use crate::answer::{beginning, excerpt, header};
use crate::asked_by::AskedBy;
use crate::request_headers;
use crate::stream::Clock;

/// The interval and the number of checks while an account is being set up. Tests use a short interval.
const POLL: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 5000 });
const MOST_POLLS: u32 = 24;
/// Maximum size of a response.
const MOST_READ: usize = 1 << 20;

const FREE_TIER: &str = "free-tier";
const LEGACY_TIER: &str = "legacy-tier";
const PATH: &str = "/v1internal";
const SET_IT: &str = "set `project` in the entry of the provider, or GOOGLE_CLOUD_PROJECT";

/// Number of tokens of which the project is remembered.
const MOST_KNOWN: usize = 64;

/// The projects of the accounts in use. Each is looked up once for a token and shared by concurrent requests: another
/// token may belong to another account. A failed lookup is repeated by the next request.
#[derive(Debug, Default)]
pub(crate) struct Project(Mutex<VecDeque<ProjectOfToken>>);

type ProjectOfToken = (Option<Secret>, Arc<OnceCell<String>>);

impl Project {
    pub(crate) async fn of(
        &self,
        endpoint: &ProviderEndpoint,
        credential: Option<&str>,
    ) -> Result<String, ModelFault> {
        if let Some(written) = &endpoint.plan().project {
            return checked(written);
        }
        let token = endpoint.present(credential).await?.secret().cloned();
        self.known(token).get_or_try_init(|| look_up(endpoint, credential)).await.cloned()
    }

    fn known(&self, token: Option<Secret>) -> Arc<OnceCell<String>> {
        let mut known = self.0.lock();
        if let Some((_, project)) = known.iter().find(|(of, _)| *of == token) {
            return project.clone();
        }
        if known.len() >= MOST_KNOWN {
            known.pop_front();
        }
        let project = Arc::default();
        known.push_back((token, Arc::clone(&project)));
        project
    }
}

/// Checks that the configured project is an id and not a number, which Google rejects here.
fn checked(project: &str) -> Result<String, ModelFault> {
    if project.bytes().all(|byte| byte.is_ascii_digit()) {
        let text =
            format!("`{project}` is the number of a Google Cloud project; set its id instead");
        return Err(ModelFault::new(FaultKind::Credentials, text));
    }
    Ok(project.to_owned())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadedAccount {
    current_tier: Option<Value>,
    #[serde(default)]
    allowed_tiers: Vec<Tier>,
    #[serde(default)]
    ineligible_tiers: Vec<Ineligible>,
    cloudaicompanion_project: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tier {
    id: Option<String>,
    #[serde(default)]
    is_default: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ineligible {
    reason_code: Option<String>,
    reason_message: Option<String>,
    validation_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Operation {
    name: Option<String>,
    #[serde(default)]
    done: bool,
    response: Option<Onboarded>,
}

#[derive(Debug, Deserialize)]
struct Onboarded {
    #[serde(rename = "cloudaicompanionProject")]
    project: Option<OnboardedProject>,
}

#[derive(Debug, Deserialize)]
struct OnboardedProject {
    id: Option<String>,
}

async fn look_up(
    endpoint: &ProviderEndpoint,
    credential: Option<&str>,
) -> Result<String, ModelFault> {
    let account = CodeAssistAccount { endpoint, credential };
    let metadata = json!({
        "ideType": "IDE_UNSPECIFIED",
        "platform": "PLATFORM_UNSPECIFIED",
        "pluginType": "GEMINI",
    });
    let body = json!({"metadata": metadata});
    let path = format!("{PATH}:loadCodeAssist");
    let loaded: LoadedAccount = account.exchange(Method::POST, &path, Some(&body)).await?;
    if loaded.current_tier.is_some() {
        let project = loaded.cloudaicompanion_project.filter(|project| !project.is_empty());
        return project.ok_or_else(needs_project);
    }
    if let Some(fault) = loaded.ineligible_tiers.iter().find_map(needs_validation) {
        return Err(fault);
    }
    let default = loaded.allowed_tiers.iter().find(|tier| tier.is_default);
    let tier = default.and_then(|tier| tier.id.as_deref()).unwrap_or(LEGACY_TIER);
    if tier != FREE_TIER {
        let why = loaded.ineligible_tiers.iter().find_map(|tier| tier.reason_message.as_deref());
        return Err(why.map_or_else(needs_project, |why| {
            ModelFault::new(FaultKind::Forbidden, format!("{why} Or {SET_IT}"))
        }));
    }
    // With a project, the free tier would be refused.
    let body = json!({"tierId": tier, "metadata": metadata});
    let path = format!("{PATH}:onboardUser");
    let begun: Operation = account.exchange(Method::POST, &path, Some(&body)).await?;
    let done = account.finished(begun).await?;
    let project =
        done.response.and_then(|response| response.project).and_then(|project| project.id);
    project.filter(|project| !project.is_empty()).ok_or_else(needs_project)
}

/// The account whose project is looked up.
#[derive(Clone, Copy)]
struct CodeAssistAccount<'a> {
    endpoint: &'a ProviderEndpoint,
    credential: Option<&'a str>,
}

impl CodeAssistAccount<'_> {
    async fn finished(self, mut operation: Operation) -> Result<Operation, ModelFault> {
        for _ in 0..MOST_POLLS {
            if operation.done {
                return Ok(operation);
            }
            let Some(name) = operation.name.take().filter(|name| is_operation(name)) else { break };
            sleep(POLL).await;
            operation = self.exchange(Method::GET, &format!("{PATH}/{name}"), None).await?;
        }
        if operation.done {
            return Ok(operation);
        }
        let text =
            "Google has not finished setting up the account for Code Assist: try again later";
        Err(ModelFault::new(FaultKind::Timeout, text))
    }

    async fn exchange<T: DeserializeOwned>(
        self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ModelFault> {
        let clock = Clock::start(self.endpoint.plan());
        let headers = |plan: &ProviderPlan| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            request_headers::authorize(&mut headers, plan)?;
            request_headers::configure(&mut headers, plan, "")?;
            Ok(headers)
        };
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let context = AskedBy { credential: self.credential, session: "" };
        let (mut answer, presented) = self
            .endpoint
            .send_with_credential(context, method, path, &headers, body, &clock)
            .await?;
        let scrubbed = |fault| request_headers::scrubbed(&presented.plan, fault);
        let (status, answered) = (answer.status, std::mem::take(&mut answer.headers));
        let body = beginning(answer, MOST_READ, &clock).await;
        if !status.is_success() {
            let header = |name: &str| header(&answered, name);
            let answer = Answer { status: status.as_u16(), header: &header, body: &body };
            return Err(presented.explained(scrubbed(fault(presented.plan.kind, &answer))));
        }
        serde_json::from_slice(&body).map_err(|_| {
            let text = format!("Code Assist answered {path} with {}", excerpt(&body));
            scrubbed(ModelFault::new(FaultKind::Unreadable, text))
        })
    }
}

/// Whether the name of an operation can safely become part of a URL.
fn is_operation(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/');
    !name.is_empty() && name.bytes().all(is_plain)
}

fn needs_project() -> ModelFault {
    let text =
        format!("this Google account needs a Google Cloud project for Code Assist: {SET_IT}");
    ModelFault::new(FaultKind::Credentials, text)
}

fn needs_validation(tier: &Ineligible) -> Option<ModelFault> {
    if tier.reason_code.as_deref() != Some("VALIDATION_REQUIRED") {
        return None;
    }
    let why = tier.reason_message.as_deref().unwrap_or("Google wants this account to be verified");
    let place = match &tier.validation_url {
        Some(url) => format!(": open {url}"),
        None => String::new(),
    };
    let code = Some("VALIDATION_REQUIRED".to_owned());
    Some(ModelFault { code, ..ModelFault::new(FaultKind::Forbidden, format!("{why}{place}")) })
}
