//! The error responses in the API document. Each is defined once, with examples, and named by the operations that have it:
//! `responses((status = 200, ...), Guarded, UnknownTool)`.

use std::collections::BTreeMap;

use switchboard_api::Problem;
use utoipa::IntoResponses;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

type Responses = BTreeMap<String, RefOr<Response>>;

/// `Name STATUS "description" { kind: "example of its detail" }`: defines a type to name in `responses(...)`.
macro_rules! answers {
    ($($name:ident $status:literal $about:literal { $($kind:ident: $detail:literal,)+ })+) => {
        $(
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> Responses {
                    let answer = Ref::from_response_name(stringify!($name));
                    BTreeMap::from([(stringify!($status).to_owned(), answer.into())])
                }
            }
        )+

        /// All error responses by name, for the components of the document.
        pub(crate) fn all() -> Vec<(&'static str, Response)> {
            vec![$(
                (stringify!($name), answer($status, $about, &[$((stringify!($kind), $detail)),+])),
            )+]
        }
    };
}

answers! {
    BadRequest 400 "The path, the query or the body is invalid." {
        bad_request: "Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1",
    }
    Unauthorized 401 "The credentials are missing or invalid. `WWW-Authenticate` has details." {
        unauthorized: "credentials are needed: send an API key or a token as `Authorization: Bearer ...`",
    }
    Forbidden 403 "The credentials do not suffice, or the request comes from a page of another site." {
        forbidden: "this needs the role operator, and the credentials have client",
        unauthorized: "the token lacks a scope that is needed here",
        forbidden_host: "the Origin header names another site; `security.allowed_origins` may add it",
    }
    UnknownProvider 404 "No provider of that name is known, or it has no such credential." {
        unknown_provider: "there is no provider `gogle`; did you mean `google`? (known are google)",
        unknown_credential: "the provider 'google' has no credential 'wrk'",
    }
    ProviderFailed 502 "The provider cannot be asked, or refused the request." {
        provider_failed: "the provider `openai` has no key: set OPENAI_API_KEY, or `api_key` in its entry of `providers`",
    }
    ProviderTimedOut 504 "The provider did not answer in time." {
        provider_timeout: "api.openai.com did not answer within 60s",
    }
    UnknownProviderAccount 404 "No provider of that name is known, it has no such credential, or there is no such sign-in." {
        unknown_provider: "there is no provider `gogle`; did you mean `google`? (known are google)",
        unknown_credential: "the provider 'google' has no credential 'wrk'",
        unknown_sign_in: "there is no such sign-in; it may have been used already, or have expired",
    }
    ProviderAccountRefused 409 "The credential has no sign-in, or the sign-in failed." {
        no_account: "no sign-in is configured for the credential 'default' of the provider 'openai'",
        sign_in_failed: "the answer belongs to another sign-in",
    }
    UnknownAccountServer 404 "No server of that name is configured, or there is no such sign-in." {
        unknown_server: "there is no MCP server 'trackr'",
        unknown_sign_in: "there is no such sign-in",
    }
    AccountRefused 409 "Users have no account of their own at this server, or the token is invalid." {
        no_account: "all callers share one account at 'demo'",
    }
    CallForbidden 403 "The credentials do not suffice, the request comes from a page of another site, a content check blocked the call or its result, or the person must sign in at the server first." {
        needs_sign_in: "tool 'list_issues' of MCP server 'tracker' needs a sign-in of the person who calls it",
        blocked: "tool 'echo' of MCP server 'demo' was not called: the content check refused it: prompt injection",
        forbidden: "this needs the role operator, and the credentials have client",
        unauthorized: "the token lacks a scope that is needed here",
        forbidden_host: "the Origin header names another site; `security.allowed_origins` may add it",
    }
    ForbiddenHost 403 "The request names another host, or comes from a page of another site." {
        forbidden_host: "the Host header does not name this machine; `security.allowed_hosts` may add names",
    }
    UnknownTool 404 "No tool has that name, or these credentials may not use it." {
        unknown_tool: "there is no tool 'demo.ech'",
    }
    UnknownDeclaration 404 "The configuration file has no entry of that name." {
        unknown_declaration: "the file has no entry for the tool 'demo.ech'",
    }
    UnknownConfigServer 404 "No server of that name is configured." {
        unknown_server: "no server 'dmo' is configured",
    }
    EditConflict 409 "The configuration file cannot be changed. Nothing was changed." {
        no_configuration_file: "there is no configuration file to change: the configuration comes from the environment alone",
        file_unwritable: "cannot write switchboard.yaml: the file is read-only",
        file_changed: "switchboard.yaml was changed by another program in the meantime; nothing was written",
        overridden: "the environment variable SWITCHBOARD__TOOLBOX__TOOLS sets this part of `toolbox.tools`, and an edit of the file would not take effect or would shift what the variable sets",
    }
    StaleEntry 412 "The entry has changed since the version of `If-Match`, or exists although `If-None-Match` is `*`. Nothing was changed." {
        stale_entry: "the entry for the tool 'demo.echo' has changed since it was read",
    }
    UnreadEntry 428 "The declaration would release an argument that is fixed or hidden, and the request does not say which version of the entry it replaces. Nothing was changed." {
        unread_entry: "this declaration leaves out what is fixed or hidden: tenant_key",
    }
    EditRefused 422 "The changed configuration would be invalid, or the board cannot apply it; `errors` has each problem. Nothing was changed." {
        invalid_configuration: "/arguments/0/type: found `text` (use one of string, number, integer, boolean, object, array)",
        not_applied: "the changed configuration cannot be applied, and nothing was written: Failed to connect to MCP server 'demo'",
    }
    UnknownResult 404 "There is no such result, or it is no longer stored." {
        unknown_result: "there is no result 'result-1'; large results are kept for a day",
    }
    UnknownRecord 404 "There is no such record, it is no longer kept, or it is not yours." {
        unknown_record: "there is no record of a call '0190f3c2', or it is no longer kept",
    }
    UnknownRunningCall 404 "No such call waits or runs, or it is not yours." {
        unknown_call: "no call '0190f3c2' waits or runs",
    }
    UnknownQuestion 404 "No such call of yours waits for an answer to this question." {
        unknown_question: "the call does not wait for an answer to this question",
    }
    WrongAnswer 422 "The answer does not fit the schema of the question; `errors` has each problem. The question still waits." {
        invalid_answer: "the answer does not fit the question: missing required argument `name`",
    }
    UnknownToolset 404 "There is no such toolset, or these credentials may not see it." {
        unknown_toolset: "there is no toolset 'mial'",
    }
    TrialsBusy 409 "Too many servers are being tried." {
        busy: "too many servers are being tried now; try again in a moment",
    }
    UnknownSession 404 "There is no such session, or it is not yours." {
        unknown_session: "there is no session 'work'",
    }
    UnknownKey 404 "No key has this id or name." {
        unknown_key: "there is no key 'laptpo'",
    }
    UnknownAgent 404 "There is no such agent and no such session, or these credentials may not use it." {
        unknown_agent: "there is no agent 'invoicin'",
    }
    UnknownFramework 404 "There is no such agent, or no such framework." {
        unknown_agent: "there is no agent 'invoicin'",
        unknown_framework: "there is no framework 'langchain'; there are: openai, semantic-kernel, agent-framework, azure-ai-foundry",
    }
    UnknownInSession 404 "There is no such session, or it does not see such a tool." {
        unknown_session: "there is no session 'work'",
        unknown_tool: "there is no tool 'demo__ech' here; did you mean demo__echo?",
    }
    UnknownServer 404 "There is no such session, or it has no such server of its own." {
        unknown_session: "there is no session 'work'",
        unknown_server: "the session has no server 'notes' of its own",
    }
    UnknownTurn 404 "There is no such session, or it no longer has such a turn." {
        unknown_session: "there is no session 'work'",
        unknown_turn: "this session has no turn '12'; what was said is in its history",
    }
    Busy 409 "A turn of this session is running, or another request changed the conversation at the same time." {
        turn_running: "the turn '12' of this session runs; wait for its end, or cancel it",
    }
    RefusedTurn 422 "The turn cannot start: it names something that does not exist, or would make the conversation invalid. Nothing was changed." {
        bad_request: "a turn needs a message: `message` is empty",
    }
    RefusedHistory 422 "The conversation is invalid. Nothing was changed." {
        bad_request: "messages[0] is the result of `x`, but no call of that id stands right before it",
    }
    BodyLate 408 "The body did not arrive completely within a minute." {
        request_timeout: "the body did not arrive in time",
    }
    SessionConflict 409 "Another session has this id." {
        session_exists: "there is a session 'work' already",
    }
    KeyConflict 409 "Another key that is not revoked has this name." {
        conflict: "there is already a key \"laptop\"",
    }
    StaleRevision 409 "The tools have changed since the expected revision. Nothing was changed." {
        stale_revision: "the tools of this session are at revision 8, not 7: read them again, then repeat the change",
    }
    BodyTooLarge 413 "The body is larger than 4 MiB." {
        bad_request: "the body is larger than 4194304 bytes",
    }
    ConversationTooLarge 413 "The body is larger than 32 MiB." {
        bad_request: "the body is larger than 33554432 bytes",
    }
    NotJson 415 "The content type of the body is not JSON." {
        bad_request: "Expected request with `Content-Type: application/json`",
    }
    WrongShape 422 "The body is JSON, but does not fit the schema." {
        bad_request: "'my work' cannot name a session: 1 to 64 letters, digits, `_` and `-`, the first a letter or digit, and not `mcp-` at the beginning",
    }
    Refused 422 "The body does not fit the schema, or names something that this session does not have. Nothing was changed." {
        bad_request: "there is no toolset 'mail' here; there are: demo, local",
    }
    InvalidArguments 422 "The arguments do not fit the tool's schema, or the body does not fit its own. The tool was not called." {
        invalid_arguments: "the arguments of tool 'echo' of MCP server 'demo' do not fit: missing required argument `text`",
        bad_request: "Failed to deserialize the JSON body into the target type: unknown field `argument`, expected `arguments` at line 1 column 11",
    }
    CallRateLimited 429 "The tool, or the caller, has used up its rate. `Retry-After` says when to try again." {
        rate_limited: "tool 'echo' of MCP server 'demo' was not called: it may be called 60/min by this caller, and that is used up",
    }
    TooManySessions 429 "The credentials have reached their maximum number of sessions." {
        too_many_sessions: "there are too many sessions; end some first",
    }
    StoreFaulted 500 "An internal error of Switchboard or of its store. The log has details." {
        store: "the store failed; the log says why",
    }
    CallFaulted 500 "An internal error of Switchboard or of its store. The log has details." {
        internal_error: "tool 'echo' of MCP server 'demo' gave no result: a fault of Switchboard",
    }
    UpstreamFailed 502 "The MCP server responded with a protocol error or an invalid message." {
        upstream_error: "tool 'echo' of MCP server 'demo' gave no result: the server answered with error -32000: broken",
    }
    Starting 503 "The board is still connecting its servers, or the keys of the token's issuer cannot be fetched." {
        starting: "the board is still connecting its servers; try again in a moment",
        unauthorized: "the keys of the token's issuer cannot be fetched now; try again later",
    }
    NotReady 503 "The board is still connecting its servers, or is about to stop." {
        starting: "the board is still connecting its servers; try again in a moment",
        stopping: "the board is about to stop; send requests to another one",
    }
    StoreUnavailable 503 "The store does not take the write, and nothing was changed; or the board is still connecting its servers." {
        store_unavailable: "the store failed: no space is left on the disk of its data directory; nothing was changed",
        starting: "the board is still connecting its servers; try again in a moment",
        unauthorized: "the keys of the token's issuer cannot be fetched now; try again later",
    }
    CallUnavailable 503 "The call has no result: its server is unavailable, no slot became free, or the board is starting or stopping." {
        unavailable: "tool 'echo' of MCP server 'demo' is unavailable: the connection was lost",
        queue_timeout: "tool 'echo' of MCP server 'demo' waited longer than its queue_timeout of 30s and was not run: all 5 of its max_instances are in use",
        cancelled: "the call was cancelled because the board is shutting down",
        starting: "the board is still connecting its servers; try again in a moment",
        unauthorized: "the keys of the token's issuer cannot be fetched now; try again later",
    }
    CallTimedOut 504 "The call exceeded its timeout or its inactivity timeout and was cancelled." {
        timeout: "tool 'wait' of MCP server 'demo' was running longer than its timeout of 30s and was cancelled",
        inactivity_timeout: "tool 'wait' of MCP server 'demo' was running but gave no sign of life for its inactivity_timeout of 5s and was cancelled",
    }
}

/// `Name: Answer, Answer;`: groups several error responses under one name.
macro_rules! bundles {
    ($($(#[$about:meta])+ $name:ident: $($answer:ty),+;)+) => {
        $(
            $(#[$about])+
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> Responses {
                    [$(<$answer>::responses()),+].into_iter().flatten().collect()
                }
            }
        )+
    };
}

bundles! {
    /// Errors of every operation that needs credentials and the board.
    Guarded: Unauthorized, Forbidden, Starting;
    /// Errors of every operation that takes a body.
    TakesBody: BadRequest, BodyLate, BodyTooLarge, NotJson;
    /// Errors of every operation that takes a message with images, or a whole conversation.
    TakesConversation: BadRequest, BodyLate, ConversationTooLarge, NotJson;
    /// Errors of every operation that reads or writes the store. Must follow `Guarded`.
    StoreFailed: StoreFaulted, StoreUnavailable;
}

fn answer(status: u16, about: &str, examples: &[(&str, &str)]) -> Response {
    let mut response = ResponseBuilder::new()
        .description(about)
        .content("application/problem+json", problem_content(status, examples));
    if status == 401 {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        let about = "The authentication scheme (RFC 9110), and where to get a token (RFC 9728).";
        let header = HeaderBuilder::new().schema(Some(text)).description(Some(about)).build();
        response = response.header("WWW-Authenticate", header);
    }
    response.build()
}

fn problem_content(status: u16, examples: &[(&str, &str)]) -> Content {
    let examples = examples.iter().map(|(kind, detail)| {
        let problem = serde_json::to_value(Problem::new(kind, status, *detail)).ok();
        let example = ExampleBuilder::new().summary(kind.replace('_', " ")).value(problem).build();
        ((*kind).to_owned(), RefOr::T(example))
    });
    ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build()
}
