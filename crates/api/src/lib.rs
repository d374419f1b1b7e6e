//! The types of the HTTP API and of `--json`. This crate has no behaviour: other crates fill and read them.

mod account;
mod agent;
mod board_event;
mod call;
mod call_stream;
mod config;
mod content_check;
mod declaration;
mod key;
mod me;
mod merge_patch;
mod problem;
mod provider;
mod provider_account;
mod rendering;
mod server;
mod session;
mod source;
mod statistics;
mod tool;
mod toolset;

pub use account::{AccountList, AccountToken, AccountView, SignInView, SignOutView};
pub use agent::{
    AgentFrameworkView, AgentLimitsView, AgentList, AgentServerView, AgentSummary, AgentView,
};
pub use board_event::{
    BoardEvent, BoardRevisions, BoardStreamEvent, CallStart, CatalogChange, ConfigNews,
    ConfigOutcome, ServerChange, ServerLogEntry, SessionNews, SessionTransition, TurnNews,
};
pub use call::{
    CallBody, CallView, RecordDeclaration, RecordList, RecordView, RecordedContentView,
    RecordedPolicyView, SessionCallBody,
};
pub use call_stream::{
    CallEvent, CallLog, CallProblem, CallProgress, CallQuestion, CallStarted, CallStreamEvent,
    QuestionAction, QuestionAnswer,
};
pub use config::{ConfigOriginView, ConfigValueView, ConfigView, RefusedConfigView, ReloadView};
pub use content_check::{
    ChatMessageAnswer, ContentCheckDeclaration, ContentCheckList, ContentCheckView,
};
pub use declaration::{
    AbsentTool, ArgumentDeclaration, ArgumentsCheck, DeclarationPreview, LimitsDeclaration,
    ToolDeclaration, ToolDeclarationView, ToolDefinitionView,
};
pub use key::{AccessChange, AccessView, KeyChange, KeyList, KeyView, NewKeyBody, NewKeyView};
pub use me::{AccessKind, MeView};
pub use problem::{FieldError, PROBLEM_TYPE_BASE, Problem, SignInPageView};
pub use provider::{ModelList, ModelView, ProviderList, ProviderView};
pub use provider_account::{
    ProviderAccountView, ProviderSignInAnswer, ProviderSignInBody, ProviderSignInView,
    ProviderSignOutView, ProviderSignedInView,
};
pub use rendering::{
    NotShownView, RenderedToolView, RendererList, RendererView, RenderingAnswer, RenderingList,
    RenderingView, RewriteView, TokenBasis, TokenCost, ToolRendering, ToolRenderings,
};
pub use server::{
    CertificateView, LogLine, Readiness, ServerAuth, ServerDeclaration, ServerDetail, ServerList,
    ServerLog, ServerTrial, ServerView, SessionProcesses, StoreTrouble, TrialStep,
};
pub use session::{
    Bindings, CurrentRevision, NewSession, OwnServerBody, OwnServerView, OwnTransport,
    RegistrySnapshot, RevisionEvent, SessionChange, SessionClientView, SessionCopy, SessionEvent,
    SessionEventData, SessionList, SessionPreview, SessionTool, SessionTools, SessionToolset,
    SessionToolsets, SessionView, Switch, TokenChange, ToolStandingView,
};
pub use source::{LeftOutView, SourceList, SourceServerView, SourceView};
pub use statistics::{
    CallNumbers, CallPoint, CallSeries, CallStatistics, LoadView, ModelLoad, RunningCallView,
    SlotHolderView, SlotView,
};
pub use tool::{
    HiddenArgument, HiddenToolView, LimitsView, QuarantinedToolView, ToolList, ToolView,
};
pub use toolset::{
    ToolsetDeclaration, ToolsetDetail, ToolsetList, ToolsetMembers, ToolsetRules, ToolsetView,
};
