//! The source of answers for session commands: a running instance, or a board that the command starts itself.

use std::sync::Arc;
use std::time::Duration;

use switchboard_api::{
    CallView, NewSession, Problem, RenderingView, SessionCallBody, SessionChange, SessionList,
    SessionTools, SessionToolsets, SessionView,
};
use switchboard_http::{present_sessions as present, session_call};
use switchboard_model::{Caller, Face, LocalToolChoice, Plan};
use switchboard_render::Provider;
use switchboard_runtime::{Board, COMMAND_WAIT, Memory, SERVING_WAIT};
use switchboard_sessions::{ATTACH_WAIT, Session, SessionError, SessionService, Summary};
use switchboard_turns::Turns;

use crate::args::Globals;
use crate::discovered::plan_with_discovered;
use crate::embedded::{end_board, finish_start, load_config, open_board, open_store};
use crate::exposure::ExposureArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;

/// The owner of sessions that are created without a server.
pub(crate) const LOCAL_OWNER: &str = "local";

/// The caller of commands that run without a server.
pub(crate) fn local_caller() -> Caller {
    Caller::local(Face::Cli)
}

/// Where sessions are: in a running instance, or in a board that this process starts.
pub(crate) enum SessionBackend {
    Remote(Remote),
    Embedded(Arc<Board>, Arc<SessionService>, Arc<Turns>),
}

/// When a running turn sees a change of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeTiming {
    NextTurn,
    Now,
}

/// Whether a change waits for the servers that it attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    UntilConnected,
    No,
}

impl SessionBackend {
    /// Connects to the instance of `--url`, else starts a board with all servers.
    pub(crate) async fn open(globals: &Globals, output: Output) -> Result<Self, Failure> {
        Self::open_with(globals, output, Some(COMMAND_WAIT)).await
    }

    /// The same for a conversation, which takes the tools of slow servers later.
    pub(crate) async fn open_for_conversation(
        globals: &Globals,
        output: Output,
    ) -> Result<Self, Failure> {
        Self::open_with(globals, output, Some(SERVING_WAIT)).await
    }

    /// The same for commands that need no tools: no server is connected.
    pub(crate) async fn open_without_servers(
        globals: &Globals,
        output: Output,
    ) -> Result<Self, Failure> {
        Self::open_with(globals, output, None).await
    }

    /// `grace` is how long a board waits for servers that are not required; without it, no server is connected.
    async fn open_with(
        globals: &Globals,
        output: Output,
        grace: Option<Duration>,
    ) -> Result<Self, Failure> {
        if let Some(url) = &globals.url {
            return Ok(Self::Remote(Remote::new(url)?));
        }
        let loaded = load_config(globals, output)?;
        let plan = if grace.is_some() {
            plan_with_discovered(globals, &loaded, output).await
        } else {
            Plan {
                servers: Vec::new(),
                tools: Vec::new(),
                toolsets: Vec::new(),
                local_tools: LocalToolChoice::default(),
                ..loaded.plan
            }
        };
        let store = open_store(globals).await?;
        let exposure = ExposureArguments::default().rule();
        let starting = open_board(plan, store, Memory::ReadOnly, exposure).await?;
        let board = finish_start(starting, grace.unwrap_or_default()).await?;
        let sessions = SessionService::start(board.clone());
        let turns = Turns::start(&board, sessions.clone(), &|name| std::env::var(name).ok());
        Ok(Self::Embedded(board, sessions, turns))
    }

    pub(crate) async fn create(&self, wanted: NewSession) -> Result<SessionView, Failure> {
        match self {
            Self::Remote(remote) => remote.post(&["sessions"], &wanted).await,
            Self::Embedded(_, sessions, _) => {
                let id = wanted.id.clone();
                let beginning = present::beginning(wanted);
                let session = sessions
                    .new_session(id.as_deref(), LOCAL_OWNER, beginning, ATTACH_WAIT)
                    .await?;
                Ok(present::session(sessions, Summary::of(&session)))
            }
        }
    }

    pub(crate) async fn list(&self) -> Result<SessionList, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["sessions"], &[]).await,
            Self::Embedded(_, sessions, _) => {
                let listed = sessions.sessions().list(None).await?;
                let clients = sessions.session_clients(None).await?;
                Ok(present::sessions(sessions, listed, &clients))
            }
        }
    }

    pub(crate) async fn show(&self, id: &str) -> Result<SessionView, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["sessions", id], &[]).await,
            Self::Embedded(_, sessions, _) => {
                let session = found(sessions, id).await?;
                let clients = sessions.session_clients(Some(&session.owner)).await?;
                let view = present::session(sessions, Summary::of(&session));
                Ok(present::with_clients(view, &clients))
            }
        }
    }

    pub(crate) async fn change(
        &self,
        id: &str,
        wanted: SessionChange,
        apply: ChangeTiming,
        wait: Wait,
    ) -> Result<SessionView, Failure> {
        match self {
            Self::Remote(remote) => {
                let mut query = Vec::new();
                query.extend((apply == ChangeTiming::Now).then(|| ("apply", "now".to_owned())));
                query.extend((wait == Wait::No).then(|| ("wait", "0".to_owned())));
                remote.patch(&["sessions", id], &query, &wanted).await
            }
            Self::Embedded(_, sessions, turns) => {
                let session = found(sessions, id).await?;
                let (expected, change) = present::change(wanted);
                let wait = match wait {
                    Wait::UntilConnected => ATTACH_WAIT,
                    Wait::No => Duration::ZERO,
                };
                sessions.change_session(&session, expected, change, wait).await?;
                if apply == ChangeTiming::Now {
                    turns.apply_now(&session.id);
                }
                Ok(present::session(sessions, Summary::of(&session)))
            }
        }
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), Failure> {
        match self {
            Self::Remote(remote) => remote.delete(&["sessions", id]).await,
            Self::Embedded(_, sessions, _) => {
                Ok(sessions.end_session(&found(sessions, id).await?).await?)
            }
        }
    }

    pub(crate) async fn tools(&self, id: &str) -> Result<SessionTools, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["sessions", id, "tools"], &[]).await,
            Self::Embedded(board, sessions, _) => {
                let session = found(sessions, id).await?;
                Ok(present::session_tools(board, id, &session.now()))
            }
        }
    }

    pub(crate) async fn toolsets(&self, id: &str) -> Result<SessionToolsets, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["sessions", id, "toolsets"], &[]).await,
            Self::Embedded(_, sessions, _) => {
                Ok(present::session_toolsets(&found(sessions, id).await?.now()))
            }
        }
    }

    pub(crate) async fn render(
        &self,
        id: &str,
        provider: Provider,
        explain: bool,
        since: Option<u64>,
    ) -> Result<RenderingView, Failure> {
        match self {
            Self::Remote(remote) => {
                let mut query = vec![
                    ("provider", provider.as_str().to_owned()),
                    ("explain", explain.to_string()),
                ];
                query.extend(since.map(|since| ("since", since.to_string())));
                remote.get(&["sessions", id, "render"], &query).await
            }
            Self::Embedded(_, sessions, _) => {
                let session = found(sessions, id).await?;
                Ok(present::rendering(&session, &session.now(), provider, explain, since))
            }
        }
    }

    pub(crate) async fn call(
        &self,
        id: &str,
        tool: &str,
        body: SessionCallBody,
    ) -> Result<CallView, Failure> {
        match self {
            Self::Remote(remote) => {
                remote.post(&["sessions", id, "tools", tool, "call"], &body).await
            }
            Self::Embedded(_, sessions, _) => {
                let session = found(sessions, id).await?;
                let called =
                    session_call::call(sessions, &session, tool.to_owned(), body, local_caller())
                        .await;
                called.map_err(|problem| (*problem).into())
            }
        }
    }

    /// Stops the board, if the command started one.
    pub(crate) async fn close(self) {
        if let Self::Embedded(board, sessions, turns) = self {
            turns.shutdown(Duration::ZERO).await;
            sessions.shutdown().await;
            end_board(&board).await;
        }
    }
}

pub(crate) async fn found(sessions: &SessionService, id: &str) -> Result<Arc<Session>, Failure> {
    Ok(sessions.session(id, None).await?)
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let kind = match &error {
            SessionError::Unknown(_) => "unknown_session",
            SessionError::Taken(_) => "session_exists",
            SessionError::Stale { .. } | SessionError::Contended => "stale_revision",
            SessionError::TooMany => "too_many_sessions",
            SessionError::BadName(_) | SessionError::Refused(_) | SessionError::Invalid { .. } => {
                "bad_request"
            }
            SessionError::Store(_) => "store",
        };
        Problem::new(kind, 0, error.to_string()).into()
    }
}
