//! Answers the requests of apps.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use switchboard_providers::{Providers, headers_for_provider};
use switchboard_sessions::SessionService;
use switchboard_splice::{
    Api, AppRequest, InjectedTurn, RequestTarget, SessionTools, TurnOptions, with_model,
};
use switchboard_store::Store;
use switchboard_view::ToolGroups;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::answer_stream::{self, AnswerStream, KEEP_ALIVE};
use crate::app_turn::{AppTurn, NewAppTurn};
use crate::passed_through;
use crate::provider_choice::{ChosenProvider, Needs, choose, rendering_of};
use crate::repeated_requests::{RepeatedRequests, RequestKey, WholeAnswer};
use crate::round::{Upstream, answer_path, count_path, with_query};
use crate::session_calls::CallContext;
use crate::translated_answer::Translation;
use crate::turn_log::{EndedTurns, TurnLog};
use crate::turn_records::{TurnRecords, now_ms};
use crate::{ApiFamily, AppCall, AppTurnSummary, Failure, Operation};

/// How many turns may run at the same time; an app above it is told to come back.
const MAX_TURNS: usize = 4_096;
/// How many rounds a turn has at most.
const MAX_ROUNDS: u32 = 25;
/// The name of the board where calls name a server.
const SERVER_LABEL: &str = "switchboard";

/// The id of the turn.
const TURN: HeaderName = HeaderName::from_static("x-switchboard-turn");
/// The number of requests to the provider.
const ROUNDS: HeaderName = HeaderName::from_static("x-switchboard-rounds");
/// The number of session tools that were declared.
const TOOLS: HeaderName = HeaderName::from_static("x-switchboard-tools");
/// The number of session tools that were not declared.
const LEFT_OUT: HeaderName = HeaderName::from_static("x-switchboard-tools-left-out");

/// A successful answer.
#[derive(Debug)]
pub struct AppAnswer {
    pub headers: HeaderMap,
    pub body: AnswerBody,
}

/// The body of an answer.
pub enum AnswerBody {
    Whole(Bytes),
    /// Dropping it cancels the turn.
    Stream(AnswerStream),
}

impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(body) => f.debug_tuple("Whole").field(&body.len()).finish(),
            Self::Stream(_) => f.debug_tuple("Stream").finish(),
        }
    }
}

/// Answers the requests of apps with the tools of their sessions.
pub struct Injection {
    sessions: Arc<SessionService>,
    providers: Arc<Providers>,
    store: Store,
    places: Arc<Semaphore>,
    repeated: RepeatedRequests,
    ended: Arc<EndedTurns>,
}

impl std::fmt::Debug for Injection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injection").finish_non_exhaustive()
    }
}

/// The provider of a request, and the request as it is read.
struct Target {
    chosen: ChosenProvider,
    /// The model as the provider knows it.
    model: String,
    request: AppRequest,
}

impl Injection {
    pub fn new(sessions: Arc<SessionService>, providers: Arc<Providers>) -> Arc<Self> {
        let store = sessions.board().store().clone();
        Arc::new(Self {
            sessions,
            providers,
            store,
            places: Arc::new(Semaphore::new(MAX_TURNS)),
            repeated: RepeatedRequests::default(),
            ended: Arc::default(),
        })
    }

    /// The last turns of a session that ended, oldest first.
    pub fn ended_turns(&self, session: &str) -> Vec<AppTurnSummary> {
        self.ended.of(session)
    }

    /// The answer to a request of an app.
    pub async fn answer(&self, call: AppCall) -> Result<AppAnswer, Failure> {
        match call.operation.clone() {
            Operation::Answer { api, model, is_streamed } => {
                let target = call.target(model, is_streamed);
                if call.is_injected() {
                    self.turn(call, api, target).await
                } else {
                    self.unchanged(call, api, target).await
                }
            }
            Operation::Count { api, model } => self.count(call, api, model).await,
            Operation::Models { id } => self.models(call, id.as_deref()).await,
            Operation::StoredAnswer { id } => self.stored_answer(&call, &id).await,
            Operation::DeleteStoredAnswer { id } => self.delete_stored_answer(&call, &id).await,
        }
    }

    async fn turn(
        &self,
        call: AppCall,
        api: Api,
        target: RequestTarget,
    ) -> Result<AppAnswer, Failure> {
        let place = self.place()?;
        let id = Uuid::now_v7().simple().to_string();
        let (is_retry, is_json_array) = (call.is_retry(), target.is_json_array);
        let key = RequestKey::new(&[
            call.caller.principal.as_bytes(),
            call.session.id.as_bytes(),
            api.as_str().as_bytes(),
            target.model.as_deref().unwrap_or_default().as_bytes(),
            call.query.as_deref().unwrap_or_default().as_bytes(),
            &call.body,
        ]);
        let new = self.new_turn(call, api, target, id.clone(), place).await?;
        let mut headers = HeaderMap::new();
        headers.insert(TOOLS, HeaderValue::from(new.turn.tools().len()));
        let left_out = new.turn.tools().left_out().len();
        if left_out > 0 {
            headers.insert(LEFT_OUT, HeaderValue::from(left_out));
        }
        if new.upstream.is_streamed {
            let mut turn = AppTurn::new(new);
            turn.first_frames(KEEP_ALIVE).await?;
            headers.extend(turn.headers().clone());
            let kind = if is_json_array { "application/json" } else { "text/event-stream" };
            note(&mut headers, &id, kind);
            return Ok(AppAnswer {
                headers,
                body: AnswerBody::Stream(answer_stream::of_turn(turn)),
            });
        }
        let run = || async move { AppTurn::new(new).whole().await }.boxed();
        let (id, answer) = self.repeated.answer(key, is_retry, &id, run).await?;
        let WholeAnswer { body, headers: of_provider, rounds } = answer;
        headers.extend(of_provider);
        note(&mut headers, &id, "application/json");
        headers.insert(ROUNDS, HeaderValue::from(rounds));
        Ok(AppAnswer { headers, body: AnswerBody::Whole(body) })
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            let text = format!("{MAX_TURNS} answers are in progress; try again in a moment");
            Failure::busy(&text, Duration::from_secs(1))
        })
    }

    async fn new_turn(
        &self,
        call: AppCall,
        api: Api,
        target: RequestTarget,
        id: String,
        place: OwnedSemaphorePermit,
    ) -> Result<NewAppTurn, Failure> {
        let shows_calls = call.shows_calls();
        let Target { chosen, model, mut request } = self.target(&call, api, &target)?;
        let records = self.records(&call);
        let found = records.find(&request.record_keys()).await;
        request.put_back(&found)?;
        let session = call.session.clone();
        let mut log = TurnLog::begin(
            self.ended.clone(),
            &id,
            api,
            session.id.clone(),
            call.caller.principal.clone(),
            &chosen.endpoint.plan().name,
            &model,
        );
        let access = &call.caller.access;
        let scope = self.sessions.turn_scope(&session, &ToolGroups::default(), access);
        let view = self.sessions.view_of(&scope, Some(&session));
        let tools =
            SessionTools::new(&request, &view.rendering(rendering_of(api, &chosen.endpoint)));
        log.declared(tools.len(), tools.left_out());
        let options = TurnOptions {
            shows_calls,
            seed: id.clone(),
            max_rounds: MAX_ROUNDS,
            now: u64::try_from(now_ms() / 1000).unwrap_or_default(),
            server_label: SERVER_LABEL.to_owned(),
        };
        let is_streamed = request.facts().is_streamed;
        let turn = InjectedTurn::new(request, tools, &options)?;
        let path = answer_path(&call, api, &model, is_streamed);
        let caller = Arc::new(call.caller.clone());
        let translation = translation(&chosen, api, &model);
        let upstream = upstream(call, chosen, Method::POST, path, is_streamed);
        let upstream = Upstream { translation, ..upstream };
        let sessions = self.sessions.clone();
        let calls = CallContext { sessions, session, caller, view, scope };
        Ok(NewAppTurn { id, turn, upstream, calls, records, log, place })
    }

    /// Reads a request and chooses its provider.
    fn target(&self, call: &AppCall, api: Api, target: &RequestTarget) -> Result<Target, Failure> {
        let request = AppRequest::read(api, target, &call.body)?;
        let model = request.facts().model.clone();
        let needs = Needs {
            family: call.family,
            api: Some(api),
            model: &model,
            has_credential: call.app_credential.is_some(),
        };
        let chosen = choose(&self.providers, &call.session, needs)?;
        let Some(known) = chosen.model.clone() else {
            return Ok(Target { chosen, model, request });
        };
        // Gemini's body names no model.
        let request = match target.model {
            Some(_) => request,
            None => AppRequest::read(api, target, &with_model(&call.body, &known)?)?,
        };
        Ok(Target { chosen, model: known, request })
    }

    pub(crate) fn records(&self, call: &AppCall) -> TurnRecords {
        TurnRecords {
            store: self.store.clone(),
            owner: call.caller.principal.to_string(),
            session: call.session.id.to_string(),
        }
    }

    /// Sends a request without the session's tools.
    async fn unchanged(
        &self,
        call: AppCall,
        api: Api,
        target: RequestTarget,
    ) -> Result<AppAnswer, Failure> {
        let place = self.place()?;
        let Target { chosen, model, request } = self.target(&call, api, &target)?;
        let is_streamed = request.facts().is_streamed;
        let body = match (&chosen.model, target.model) {
            (Some(model), None) => with_model(&call.body, model)?,
            _ => call.body.clone(),
        };
        let path = answer_path(&call, api, &model, is_streamed);
        let translation = translation(&chosen, api, &model);
        let upstream = upstream(call, chosen, Method::POST, path, is_streamed);
        let upstream = Upstream { translation, ..upstream };
        let answer = passed_through::pass(&upstream, body).await?;
        Ok(answer.holding(place))
    }

    /// The number of tokens of a request, with the tools of the session.
    async fn count(
        &self,
        call: AppCall,
        api: Api,
        model: Option<String>,
    ) -> Result<AppAnswer, Failure> {
        let target = call.target(model, Some(false));
        let Target { chosen, model, mut request } = self.target(&call, api, &target)?;
        let body = if call.is_injected() {
            let found = self.records(&call).find(&request.record_keys()).await;
            request.put_back(&found)?;
            let access = &call.caller.access;
            let scope = self.sessions.turn_scope(&call.session, &ToolGroups::default(), access);
            let view = self.sessions.view_of(&scope, Some(&call.session));
            let rendering = view.rendering(rendering_of(api, &chosen.endpoint));
            request.count_body(&SessionTools::new(&request, &rendering))
        } else {
            call.body.clone()
        };
        let path = count_path(&call, api, &model);
        let translation = translation(&chosen, api, &model);
        let upstream = upstream(call, chosen, Method::POST, path, false);
        passed_through::pass(&Upstream { translation, ..upstream }, body).await
    }

    /// The models of the provider that serves the API.
    async fn models(&self, call: AppCall, id: Option<&str>) -> Result<AppAnswer, Failure> {
        let needs = Needs {
            family: call.family,
            api: None,
            model: id.unwrap_or_default(),
            has_credential: call.app_credential.is_some(),
        };
        let chosen = choose(&self.providers, &call.session, needs)?;
        let base = match call.family {
            ApiFamily::OpenAi => "/models".to_owned(),
            ApiFamily::Anthropic | ApiFamily::Gemini => format!("/{}/models", call.version),
        };
        let path = match chosen.model.as_deref().or(id) {
            Some(id) => format!("{base}/{id}"),
            None => base,
        };
        let path = with_query(path, call.query.as_deref());
        let upstream = upstream(call, chosen, Method::GET, path, false);
        passed_through::pass(&upstream, Bytes::new()).await
    }
}

/// How requests are carried over to a provider that does not speak the app's API.
fn translation(chosen: &ChosenProvider, api: Api, model: &str) -> Option<Translation> {
    chosen.is_translated.then(|| Translation { api, model: model.to_owned() })
}

/// Where the requests of a call go.
fn upstream(
    call: AppCall,
    chosen: ChosenProvider,
    method: Method,
    path: String,
    is_streamed: bool,
) -> Upstream {
    let passes = chosen.endpoint.plan().passes_app_credentials;
    Upstream {
        translation: None,
        headers: headers_for_provider(&call.headers),
        credential: chosen.credential,
        app_credential: call.app_credential.filter(|_| passes),
        session: call.session.id.clone(),
        endpoint: chosen.endpoint,
        method,
        path,
        is_streamed,
    }
}

/// Adds the headers of an answer. It is not the provider's answer alone, so a time that the provider named is left out.
fn note(headers: &mut HeaderMap, id: &str, content_type: &'static str) {
    headers.remove(RETRY_AFTER);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(TURN, id);
    }
}
