//! The domain types that all other crates share: names, limits, the plan (a validated configuration), tool descriptors,
//! calls and their records.
//!
//! This crate does no IO and uses no clock and no randomness. It has no wire types: the crates at the edges define the
//! formats of files, database rows and HTTP bodies.

mod access;
mod agent;
mod argument;
mod attached;
mod call;
mod call_record;
mod caller;
mod connect_error;
mod content_check;
mod described_issuer;
mod discovery;
mod egress;
mod gateway;
mod grant;
mod header_template;
mod identity;
mod json_text;
mod limits;
mod name;
mod plan;
mod prompt_tool;
mod provider;
mod rate;
mod secret;
mod server;
mod slot_lending;
mod store_key;
mod store_plan;
mod tls;
mod token_file;
mod tool;

pub use access::{Access, AccessRule, AccessRules, CallerLimits, LiveAccess, WeakAccess};
pub use agent::{AgentLimits, AgentPlan};
pub use argument::{ArgumentSource, ArgumentSpec, ArgumentType, FixedValue, ToolGrouping};
pub use attached::{AttachedServer, HttpTransport};
pub use call::{
    ArgumentFault, CallError, CallErrorKind, CallId, CallOutcome, Fault, Hint, HintAudience, Retry,
    SignInPage, ToolResult,
};
pub use call_record::{
    CallRecord, DEFAULT_RECORDS_MAX_AGE, DEFAULT_RECORDS_MAX_CONTENT_BYTES,
    DEFAULT_RECORDS_MAX_COUNT, RecordOverlay, RecordedCaller, RecordedContent, RecordedContents,
    RecordedPolicy, RecordsPlan,
};
pub use caller::{Caller, ClientInfo, Face, Role};
pub use connect_error::{ConnectError, ConnectErrorKind};
pub use content_check::{
    CheckHook, CheckMode, ContentCheckModes, ContentCheckOverlay, ContentCheckRecord,
    ContentVerdict, DEFAULT_CHECK_TIMEOUT, FailurePolicy, ThreatProtectionPlan,
};
pub use described_issuer::{DescribedIssuer, LoopbackRedirect, RedirectHost, TokenRequestFormat};
pub use discovery::{
    AUTO_SOURCE, DEFAULT_FILE_REFRESH, DEFAULT_SOURCE_REFRESH, DEFAULT_SOURCE_SERVERS,
    DiscoveredFrom, DiscoveryPlan, FoundServer, GatewaySource, LeftOutServer, RegistryPlace,
    SourceKind, SourcePlan, SourcePolicy, SourceServers,
};
pub use egress::{EgressPolicy, EgressRefusal, EgressRule};
pub use gateway::{
    ClaimGrant, ClaimRule, DEFAULT_JWT_LEEWAY, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_SESSION_SERVERS,
    DEFAULT_MAX_SESSIONS, DEFAULT_MAX_SESSIONS_PER_PRINCIPAL, DEFAULT_SESSION_IDLE,
    DEFAULT_STARTUP_WAIT, Exposure, ExposureMode, GatewayPlan, JwksSource, JwtGrants, JwtPlan,
    META_TOOLS, Naming, PageClient, SecurityPlan, StatelessState, ToolsetPlan, denied_servers,
};
pub use grant::{GrantId, GrantOwner, GrantPurpose, RenewalTurn, UnknownPurpose};
pub use header_template::{CallerField, CallerHeader, HeaderPart, HeaderRefusal, HeaderTemplate};
pub use identity::Identity;
pub use json_text::{JsonText, json_length};
pub use limits::{
    BUILT_IN_LIMITS, DEFAULT_MAX_CONCURRENT, DEFAULT_MAX_RESULT_BYTES, DEFAULT_MAX_TIMEOUT,
    LimitsOverlay, ToolLimits, render_duration,
};
pub use name::{CanonicalName, LOCAL_SERVER, ServerName};
pub use plan::{
    AdmissionMode, LocalToolChoice, NO_TOOLSET, Plan, RequiredOrigin, RootKey, ServerPlan,
    ToolEntry,
};
pub use prompt_tool::{DEFAULT_PROMPT_DEPTH, PromptToolPlan};
pub use provider::{
    BUILT_IN_PROVIDERS, DEFAULT_CREDENTIAL, DEFAULT_PROVIDER_IDLE_TIMEOUT,
    DEFAULT_PROVIDER_TOTAL_TIMEOUT, DeclarationKeys, Effort, ModelRule, ModelSettings,
    ProviderAuth, ProviderKind, ProviderPlan, ToolSchemaForm, ToolStrategy, UnknownProviderKind,
    UnknownStrategy,
};
pub use rate::{BadRate, Rate, RateBucket};
pub use secret::{Secret, redact_url};
pub use server::{
    AccountScope, ClientProof, DEFAULT_CONNECT_TIMEOUT, DEFAULT_CONNECTION_IDLE,
    DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_OWNER_CONNECTIONS, DEFAULT_STDIO_CONNECT_TIMEOUT,
    Endpoint, Era, EraChoice, ExchangeClient, ListingAccount, OAuthGrant, OAuthSettings, OwnClient,
    ServerSpec, ServerState, Sharing, SignInClient, SigningAlgorithm, TransportKind, UpstreamAuth,
    is_on_this_machine,
};
pub use slot_lending::{SlotClaim, SlotLoan, lend_slots, slot_targets, spare_slots};
pub use store_key::{StoreKey, StoreKeys};
pub use store_plan::{AfterLoss, DEFAULT_STORE_CONNECTIONS, OnStoreLoss, SlotPlan, StorePlan};
pub use tls::{ClientCertificates, TlsPlan};
pub use token_file::TokenFile;
pub use tool::{QuarantinedTool, ToolDescriptor, UpstreamToolList};
