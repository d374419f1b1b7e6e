//! Runs content checks and applies the policy: which verdicts end the work, what is recorded, and what happens beside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_model::{
    Caller, CanonicalName, CheckHook, CheckMode, ContentCheckRecord, ContentVerdict, FailurePolicy,
    Plan, render_duration,
};
use switchboard_outbound::{HttpPool, describe_failure};
use switchboard_store::Store;
use switchboard_telemetry::{content_check_skipped, content_checked};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::board::Board;
use crate::check_redaction::CheckRedaction;
use crate::content_check::{CheckInput, ContentCheck, MAX_CHECKED_BYTES};
use crate::content_check_http::HttpContentCheck;

/// Maximum number of checks that run beside the work they observe. Further ones are skipped and counted.
const MAX_OBSERVED: usize = 64;
/// Maximum number of records that are written beside the work; further ones are dropped and counted.
const MAX_WRITES: usize = 256;
/// How long blocked work waits until its record is written.
const RECORD_WITHIN: Duration = Duration::from_secs(1);
/// How long the shutdown waits for checks and records.
const FINISH_WITHIN: Duration = Duration::from_secs(2);
/// Maximum number of records that are kept; the oldest are deleted.
pub(crate) const MAX_RECORDS: u64 = 10_000;

/// Work that must not go on. The message says what the check said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentBlocked {
    #[error("the content check refused it{}", after_colon(.reason))]
    Refused { reason: String },
    #[error("the content check gave no verdict, and `threat_protection.on_failure` is `closed`{}", after_colon(.reason))]
    NoVerdict { reason: String },
}

fn after_colon(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// Whose work is checked, for the record.
#[derive(Debug, Clone)]
pub struct CheckSubject {
    pub principal: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
    pub tool: Option<CanonicalName>,
}

impl CheckSubject {
    /// The work of a caller.
    pub fn of(caller: &Caller, tool: Option<&CanonicalName>) -> Self {
        Self {
            principal: Some(caller.principal.clone()),
            session: caller.session.clone(),
            tool: tool.cloned(),
        }
    }
}

/// The checks of a board.
#[derive(Debug)]
pub(crate) struct ContentChecks(Arc<CheckService>);

/// The check of a plan, made once for it.
type CheckOfPlan = (Arc<Plan>, Arc<dyn ContentCheck>);

#[derive(Debug)]
struct CheckService {
    store: Store,
    http: HttpPool,
    /// Replaces the endpoint of the configuration.
    own: OnceLock<Arc<dyn ContentCheck>>,
    /// The check of the plan that was used last.
    current: Mutex<Option<CheckOfPlan>>,
    observed: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Whether the last check gave no verdict, so that an outage is logged once.
    is_failing: AtomicBool,
}

/// A check that has ended.
struct Judged {
    verdict: ContentVerdict,
    took: Duration,
    hook: CheckHook,
    message: String,
    conversation: String,
    messages: usize,
    bytes: usize,
}

impl ContentChecks {
    pub(crate) fn new(store: Store) -> Self {
        Self(Arc::new(CheckService {
            store,
            http: HttpPool::default(),
            own: OnceLock::new(),
            current: Mutex::default(),
            observed: Arc::new(Semaphore::new(MAX_OBSERVED)),
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            tasks: TaskTracker::new(),
            is_failing: AtomicBool::new(false),
        }))
    }

    /// Waits a moment for checks and records that run beside the work.
    pub(crate) async fn finish(&self) {
        self.0.tasks.close();
        let _unfinished = tokio::time::timeout(FINISH_WITHIN, self.0.tasks.wait()).await;
    }
}

impl Board {
    /// Uses this check instead of the endpoint of the configuration. The first one stays.
    pub fn set_content_check(&self, check: Arc<dyn ContentCheck>) {
        // A second one would be of the same program.
        let _is_set = self.content_checks.0.own.set(check);
    }

    /// Checks content in the mode of a hook. With [`CheckMode::Block`] it waits for the verdict, at most for the timeout of
    /// the configuration; the error says why the work must not go on. With [`CheckMode::Observe`] the check runs beside the
    /// work, and this returns at once. Dropping the future abandons a check that blocks.
    pub async fn check_content(
        &self,
        plan: &Arc<Plan>,
        mode: CheckMode,
        subject: CheckSubject,
        input: CheckInput,
    ) -> Result<(), ContentBlocked> {
        match mode {
            CheckMode::Off => Ok(()),
            CheckMode::Observe => {
                self.content_checks.0.observe(plan.clone(), subject, input);
                Ok(())
            }
            CheckMode::Block => self.content_checks.0.block(plan, subject, input).await,
        }
    }

    /// Asks for the verdict about a chat message that another agent sent here; `None` if there is no endpoint.
    pub async fn judge_received(
        &self,
        plan: &Arc<Plan>,
        input: CheckInput,
    ) -> Option<ContentVerdict> {
        let service = &self.content_checks.0;
        if plan.threat_protection.endpoint.is_none() && service.own.get().is_none() {
            return None;
        }
        Some(service.judge(plan, input).await.verdict)
    }

    /// Stores the record of a chat message that another agent sent here. It is stored when this returns.
    pub async fn record_received(
        &self,
        record: ContentCheckRecord,
    ) -> Result<(), switchboard_store::StoreError> {
        self.store.record_content_check(&record, MAX_RECORDS).await
    }
}

impl CheckService {
    fn observe(self: &Arc<Self>, plan: Arc<Plan>, subject: CheckSubject, input: CheckInput) {
        let Ok(permit) = self.observed.clone().try_acquire_owned() else {
            content_check_skipped(input.hook.as_str());
            tracing::debug!(hook = input.hook.as_str(), "too many content checks run; skipped");
            return;
        };
        let service = self.clone();
        self.tasks.spawn(async move {
            let judged = service.judge(&plan, input).await;
            drop(permit);
            if judged.verdict != ContentVerdict::Allowed {
                service.write(&judged.record(&subject, false)).await;
            }
        });
    }

    async fn block(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        subject: CheckSubject,
        input: CheckInput,
    ) -> Result<(), ContentBlocked> {
        let judged = self.judge(plan, input).await;
        let blocked = match &judged.verdict {
            ContentVerdict::Allowed => return Ok(()),
            ContentVerdict::Refused { reason } => {
                ContentBlocked::Refused { reason: reason.clone() }
            }
            ContentVerdict::Failed { reason } => match plan.threat_protection.on_failure {
                FailurePolicy::Closed => ContentBlocked::NoVerdict { reason: reason.clone() },
                FailurePolicy::Open => {
                    self.write_beside(judged.record(&subject, false));
                    return Ok(());
                }
            },
        };
        let record = judged.record(&subject, true);
        if tokio::time::timeout(RECORD_WITHIN, self.write(&record)).await.is_err() {
            tracing::warn!("the record of a content check could not be written in time");
        }
        Err(blocked)
    }

    async fn judge(&self, plan: &Arc<Plan>, input: CheckInput) -> Judged {
        let started = Instant::now();
        let (hook, messages, bytes) = (input.hook, input.messages(), input.bytes());
        let (message, conversation) = (input.message.clone(), input.conversation.clone());
        let verdict = match input.bounded(MAX_CHECKED_BYTES) {
            Err(size) => ContentVerdict::Failed {
                reason: format!("it has {size} bytes, and at most {MAX_CHECKED_BYTES} are checked"),
            },
            Ok(input) => self.verdict(plan, input).await,
        };
        let took = started.elapsed();
        content_checked(hook.as_str(), verdict.as_str(), took);
        self.log(hook, &verdict);
        Judged { verdict, took, hook, message, conversation, messages, bytes }
    }

    async fn verdict(&self, plan: &Arc<Plan>, input: CheckInput) -> ContentVerdict {
        let failed = |reason: String| ContentVerdict::Failed { reason };
        let check = match self.checker(plan) {
            Ok(check) => check,
            Err(reason) => return failed(reason.into()),
        };
        let limit = plan.threat_protection.timeout;
        match tokio::time::timeout(limit, check.check(input)).await {
            Ok(verdict) => verdict,
            Err(_elapsed) => {
                failed(format!("it took longer than its timeout of {}", render_duration(limit)))
            }
        }
    }

    /// The check of this plan, made once.
    fn checker(&self, plan: &Arc<Plan>) -> Result<Arc<dyn ContentCheck>, &'static str> {
        if let Some(own) = self.own.get() {
            return Ok(own.clone());
        }
        let mut current = self.current.lock();
        if let Some((known, check)) = &*current
            && Arc::ptr_eq(known, plan)
        {
            return Ok(check.clone());
        }
        let settings = &plan.threat_protection;
        let url = settings.endpoint.clone().ok_or("no endpoint is configured")?;
        let redaction = CheckRedaction::new(plan)?;
        let check =
            HttpContentCheck::new(self.http.clone(), url, settings.token.clone(), redaction);
        let check: Arc<dyn ContentCheck> = Arc::new(check);
        *current = Some((plan.clone(), check.clone()));
        Ok(check)
    }

    fn log(&self, hook: CheckHook, verdict: &ContentVerdict) {
        let hook = hook.as_str();
        match verdict {
            ContentVerdict::Allowed => self.is_failing.store(false, Ordering::Relaxed),
            ContentVerdict::Refused { reason } => {
                self.is_failing.store(false, Ordering::Relaxed);
                tracing::warn!(hook, reason, "the content check refused content");
            }
            ContentVerdict::Failed { reason } => {
                if self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::debug!(hook, reason, "the content check gave no verdict");
                } else {
                    tracing::warn!(hook, reason, "the content check gave no verdict");
                }
            }
        }
    }

    fn write_beside(self: &Arc<Self>, record: ContentCheckRecord) {
        let Ok(permit) = self.writes.clone().try_acquire_owned() else {
            switchboard_telemetry::records_dropped(1);
            return;
        };
        let service = self.clone();
        self.tasks.spawn(async move {
            service.write(&record).await;
            drop(permit);
        });
    }

    async fn write(&self, record: &ContentCheckRecord) {
        if self.store.outage().is_some() {
            switchboard_telemetry::records_dropped(1);
            return;
        }
        if let Err(error) = self.store.record_content_check(record, MAX_RECORDS).await {
            switchboard_telemetry::records_dropped(1);
            let error = error.in_full();
            tracing::warn!(error, "the record of a content check could not be written");
        }
    }
}

impl Judged {
    fn record(&self, subject: &CheckSubject, blocked: bool) -> ContentCheckRecord {
        let session = subject.session.as_ref().map(ToString::to_string);
        ContentCheckRecord {
            id: uuid::Uuid::now_v7().to_string(),
            at_ms: jiff::Timestamp::now().as_millisecond(),
            hook: self.hook,
            verdict: self.verdict.as_str().to_owned(),
            blocked,
            reason: self.verdict.reason().map(str::to_owned),
            principal: subject.principal.clone(),
            conversation: Some(session.unwrap_or_else(|| self.conversation.clone())),
            message: self.message.clone(),
            tool: subject.tool.clone(),
            messages: self.messages as u64,
            bytes: self.bytes as u64,
            took: self.took,
        }
    }
}

/// Whether something answers at the endpoint of the configuration; the error says why not. Nothing is sent to be checked,
/// and no token.
pub async fn reach_check_endpoint(plan: &Plan) -> Option<Result<(), String>> {
    let settings = &plan.threat_protection;
    let url = settings.endpoint.clone()?;
    let reached = async {
        let http = HttpPool::default().client_for(&url).map_err(|error| error.message)?;
        let response = http.head(url).send().await;
        response.map(|_any| ()).map_err(|error| describe_failure(&error).message)
    };
    let limit = settings.timeout;
    Some(
        tokio::time::timeout(limit, reached).await.unwrap_or_else(|_elapsed| {
            Err(format!("no response within {}", render_duration(limit)))
        }),
    )
}
