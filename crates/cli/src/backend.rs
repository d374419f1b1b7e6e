//! The source of answers for a command: a running instance, or a board that the command starts itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_api::{
    CallBody, CallView, LoadView, Problem, ServerList, SlotHolderView, ToolDeclarationView,
    ToolList, ToolView,
};
use switchboard_http::{present, tool_declaration};
use switchboard_model::{AdmissionMode, LocalToolChoice, Plan, ServerName, ToolEntry};
use switchboard_runtime::{Board, CallRequest, ExposureRule, LiveConfig, Memory};

use crate::args::Globals;
use crate::discovered::plan_with_discovered;
use crate::embedded::{config_source, end_board, load_config, open_store, start_board};
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;
use crate::session_backend::local_caller;

/// A running instance or an embedded board.
pub(crate) enum Backend {
    Remote(Remote),
    Embedded(Arc<Board>),
}

impl Backend {
    /// Connects to the instance of `--url`, else starts a board with all servers.
    pub(crate) async fn open(globals: &Globals, output: Output) -> Result<Self, Failure> {
        Self::open_for(globals, output, |_| true, |_| {}).await
    }

    /// Like [`Backend::open`], for commands that show servers: a server that cannot be reached is shown and is no
    /// failure.
    pub(crate) async fn open_to_look(
        globals: &Globals,
        output: Output,
        only: Option<&str>,
    ) -> Result<Self, Failure> {
        let is_in_file =
            |plan: &Plan| plan.servers.iter().any(|it| Some(it.spec.name.as_str()) == only);
        Self::open_for(
            globals,
            output,
            |plan| !is_in_file(plan),
            |plan| {
                plan.servers
                    .retain(|server| only.is_none_or(|name| server.spec.name.as_str() == name));
                for server in &mut plan.servers {
                    server.required = false;
                }
            },
        )
        .await
    }

    /// Like [`Backend::open`], for one tool: for `server.tool` only that server is started.
    pub(crate) async fn open_for_tool(
        globals: &Globals,
        output: Output,
        tool: &str,
    ) -> Result<Self, Failure> {
        let is_of_other =
            |plan: &Plan| !plan.servers.iter().any(|it| is_tool_of(tool, &it.spec.name));
        Self::open_for(globals, output, is_of_other, |plan| keep_needed_servers(plan, tool)).await
    }

    /// Like [`Backend::open_for_tool`], for a command that shows the tool: a server that cannot be reached is no failure.
    pub(crate) async fn open_to_look_at_tool(
        globals: &Globals,
        output: Output,
        tool: &str,
    ) -> Result<Self, Failure> {
        let is_of_other =
            |plan: &Plan| !plan.servers.iter().any(|it| is_tool_of(tool, &it.spec.name));
        Self::open_for(globals, output, is_of_other, |plan| {
            keep_needed_servers(plan, tool);
            for server in &mut plan.servers {
                server.required = false;
            }
        })
        .await
    }

    /// `needs_sources` decides by the servers of the file whether discovered servers can matter.
    async fn open_for(
        globals: &Globals,
        output: Output,
        needs_sources: impl FnOnce(&Plan) -> bool,
        narrow: impl FnOnce(&mut Plan),
    ) -> Result<Self, Failure> {
        if let Some(url) = &globals.url {
            return Ok(Self::Remote(Remote::new(url)?));
        }
        let loaded = load_config(globals, output)?;
        let mut plan = if needs_sources(&loaded.plan) {
            plan_with_discovered(globals, &loaded, output).await
        } else {
            loaded.plan
        };
        narrow(&mut plan);
        let store = open_store(globals).await?;
        Ok(Self::Embedded(
            start_board(plan, store, Memory::ReadOnly, ExposureRule::default()).await?,
        ))
    }

    pub(crate) async fn servers(&self) -> Result<ServerList, Failure> {
        match self {
            Self::Remote(remote) => remote.servers().await,
            Self::Embedded(board) => Ok(present::servers(board)),
        }
    }

    pub(crate) async fn tools(&self) -> Result<ToolList, Failure> {
        match self {
            Self::Remote(remote) => remote.tools().await,
            Self::Embedded(board) => Ok(present::tools(board)),
        }
    }

    /// Which boards hold slots of which tools. Empty without a database that boards share, or without the right to know.
    pub(crate) async fn slot_holders(&self) -> BTreeMap<String, Vec<SlotHolderView>> {
        match self {
            Self::Remote(remote) => {
                let load: Result<LoadView, _> = remote.get(&["stats", "now"], &[]).await;
                let slots = load.map(|load| load.slots).unwrap_or_default().into_iter();
                slots.filter(|it| !it.holders.is_empty()).map(|it| (it.tool, it.holders)).collect()
            }
            Self::Embedded(board) => {
                let mut by_tool: BTreeMap<String, Vec<SlotHolderView>> = BTreeMap::new();
                for (tool, holder) in present::slot_holders(board).await {
                    by_tool.entry(tool).or_default().push(holder);
                }
                by_tool
            }
        }
    }

    pub(crate) async fn tool(&self, name: &str) -> Result<ToolView, Failure> {
        match self {
            Self::Remote(remote) => remote.tool(name).await,
            Self::Embedded(board) => present::tool(board, name).map_err(|none| {
                let mut problem = Problem::new("unknown_tool", 404, none.message);
                problem.hint = none.hint;
                problem.into()
            }),
        }
    }

    /// What the configuration declares of a tool, and why the tool is not there if it is not.
    pub(crate) async fn declaration(
        &self,
        globals: &Globals,
        name: &str,
    ) -> Result<ToolDeclarationView, Failure> {
        match self {
            Self::Remote(remote) => remote.get(&["tools", name, "declaration"], &[]).await,
            Self::Embedded(board) => {
                let source = config_source(globals);
                let loaded = source.load()?;
                let config = LiveConfig::new(board.clone(), source, loaded);
                tool_declaration(&config, name).map_err(|problem| (*problem).into())
            }
        }
    }

    pub(crate) async fn call(&self, name: &str, body: CallBody) -> Result<CallView, Failure> {
        match self.call_once(name, body).await {
            Err(failure) if failure.kind() == "unknown_tool" => {
                Err(self.absence(name).await.unwrap_or(failure))
            }
            called => called,
        }
    }

    /// Why a tool that is configured or offered is not there; `None` for other names, and for callers that may not know.
    async fn absence(&self, name: &str) -> Option<Failure> {
        let absent = match self {
            Self::Remote(remote) => {
                let path = ["tools", name, "declaration"];
                remote.get::<ToolDeclarationView>(&path, &[]).await.ok()?.absent?
            }
            Self::Embedded(board) => present::absent_tool(board, name)?,
        };
        let message = format!("there is no tool '{name}': {}", absent.message);
        let mut problem = Problem::new("unknown_tool", 404, message);
        problem.hint = absent.hint;
        Some(problem.into())
    }

    async fn call_once(&self, name: &str, body: CallBody) -> Result<CallView, Failure> {
        match self {
            Self::Remote(remote) => remote.call(name, &body).await,
            Self::Embedded(board) => {
                let request = CallRequest {
                    check: None,
                    tool: name.to_owned().into(),
                    arguments: body.arguments,
                    caller: Arc::new(local_caller()),
                    requested: None,
                    progress: None,
                    conversation: None,
                };
                let report = board.call(request).await;
                present::call(&report).map_err(|error| {
                    let mut problem = Problem::new(error.kind.as_str(), 0, &*error.message);
                    problem.hint = error.hint();
                    problem.into()
                })
            }
        }
    }

    /// Stops the board, if the command started one.
    pub(crate) async fn close(self) {
        match self {
            Self::Remote(_) => {}
            Self::Embedded(board) => end_board(&board).await,
        }
    }
}

/// Whether `tool` is a canonical name with this server.
fn is_tool_of(tool: &str, server: &ServerName) -> bool {
    tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('.'))
}

/// Removes servers that cannot have the tool, so that a call of one tool does not start all servers.
fn keep_needed_servers(plan: &mut Plan, tool: &str) {
    let is_of = |server: &ServerName| is_tool_of(tool, server);
    let all: Vec<ServerName> = plan.servers.iter().map(|server| server.spec.name.clone()).collect();
    if plan.tools.iter().any(|entry| is_prompt_tool_with_tools(entry, tool)) {
        return;
    }
    if is_of(&ServerName::local()) {
        plan.servers.clear();
    } else if plan.servers.iter().any(|server| is_of(&server.spec.name)) {
        plan.servers.retain(|server| is_of(&server.spec.name));
    } else {
        return;
    }
    // An entry for a removed server applies to no other server.
    let is_kept = |name: &ServerName| plan.servers.iter().any(|server| server.spec.name == *name);
    let gone: Vec<_> = all.into_iter().filter(|name| !is_kept(name)).collect();
    let is_elsewhere = |entry: &str| {
        let is_at = |name: &ServerName| {
            entry.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        gone.iter().any(is_at)
    };
    plan.tools.retain(|entry| !is_elsewhere(&entry.name));
    // An entry for a removed server would be reported as not offered by the others. A strict server needs an entry for
    // each of its tools, so in that case every entry that may apply stays.
    let is_strict = plan.servers.iter().any(|server| server.mode == AdmissionMode::Strict);
    let bare = tool.split_once('.').map_or(tool, |(_, bare)| bare);
    plan.tools.retain(|entry| is_strict || entry.name == tool || entry.name == bare);
    // A built-in tool whose entry was removed must not be registered.
    plan.local_tools = LocalToolChoice::NamedInTools;
}

/// Whether an entry declares a prompt tool of this name whose model may call other tools, of any server.
fn is_prompt_tool_with_tools(entry: &ToolEntry, name: &str) -> bool {
    let calls_tools = entry.prompt.as_ref().is_some_and(|prompt| !prompt.tools.is_empty());
    calls_tools && name.strip_prefix("local.") == Some(entry.name.as_str())
}
