//! What the configuration file declares about tools: read, previewed and changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::Extension;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::ready;
use serde_json::{Map, Value};
use switchboard_api::{
    ArgumentsCheck, CallBody, DeclarationPreview, FieldError, Problem, ToolDeclaration,
    ToolDeclarationView, ToolDefinitionView,
};
use switchboard_auth::Principal;
use switchboard_config::{ConfigEdit, EntryList, released_arguments};
use switchboard_model::{JsonText, ToolDescriptor, ToolEntry};
use switchboard_registry::{Catalog, CatalogTool};
use switchboard_render::{NamedTool, Provider, render_tool};
use switchboard_runtime::{Board, LiveConfig, WrittenEntry};
use switchboard_schema::declare_arguments;

use crate::answers::{
    BadRequest, EditConflict, EditRefused, Guarded, StaleEntry, TakesBody, UnknownDeclaration,
    UnknownTool, UnreadEntry, WrongShape,
};
use crate::entry_edit::{change_entry, edit_problem, etag, invalid, names_version};
use crate::entry_preconditions::{IfRemovable, IfReplaceable};
use crate::entry_values::{
    declaration_of, declared_pointer, fields_of, hide_tool_secrets, keep_hidden, new_references,
    shown_references,
};
use crate::extract::{FromBody, FromPath};
use crate::inspect::{ToolName, finds_tool, unknown_tool};
use crate::present_absence::absent_tool;
use crate::problem::ProblemResponse;
use crate::ready::{Ready, ReadyConfig, ReadySessions};

const LIST: EntryList = EntryList::Tools;

/// Show the declaration of a tool
///
/// The entry of exactly this name in `toolbox.tools`, beside the server's own definition and what callers see, or why they do
/// not see it. Needs the role operator.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{name}/declaration",
    operation_id = "getDeclaration",
    tag = "tools",
    params(ToolName),
    responses(
        (
            status = 200,
            description = "The declaration.",
            body = ToolDeclarationView,
            headers(("etag" = String, description = "The version of the entry, if there is one."))
        ),
        Guarded,
        BadRequest,
        UnknownTool,
        EditConflict,
        EditRefused,
    )
)]
pub(crate) async fn show(
    ReadyConfig(config): ReadyConfig,
    FromPath(ToolName { name }): FromPath<ToolName>,
) -> Result<Response, ProblemResponse> {
    answer(&config, &name)
}

/// Declare a tool
///
/// Makes the entry of this name in `toolbox.tools` hold exactly this declaration: the text of the configuration file is edited,
/// checked, written and applied before the response. Members that are absent are removed from the entry. A declaration that
/// leaves out an argument with a `value` or with `hidden`, or gives it to callers, needs the `ETag` of the entry in `If-Match`:
/// who has not read the entry does not know of the argument. A value that the entry keeps does not go to another tool.
/// Needs the role admin.
#[utoipa::path(
    put,
    path = "/api/v1/tools/{name}/declaration",
    operation_id = "putDeclaration",
    tag = "tools",
    params(ToolName, IfReplaceable),
    request_body(
        content = ToolDeclaration,
        description = "The declaration.",
        example = json!({"description": "Adds two numbers", "limits": {"timeout": "5s"}})
    ),
    responses(
        (
            status = 200,
            description = "The declaration is written and in force.",
            body = ToolDeclarationView,
            headers(("etag" = String, description = "The new version of the entry."))
        ),
        Guarded,
        TakesBody,
        EditConflict,
        StaleEntry,
        UnreadEntry,
        EditRefused,
    )
)]
pub(crate) async fn put(
    ReadyConfig(config): ReadyConfig,
    FromPath(ToolName { name }): FromPath<ToolName>,
    headers: HeaderMap,
    FromBody(body): FromBody<Map<String, Value>>,
) -> Result<Response, ProblemResponse> {
    change_entry(&config, (LIST, &name), &headers, |present| {
        let fields = new_fields(body.clone(), present.as_ref()).and_then(|fields| {
            let released = released(present.as_ref(), &fields);
            if released.is_empty() || names_version(&headers) {
                Ok(fields)
            } else {
                Err(unread_entry("this declaration leaves out", &released))
            }
        });
        let name = name.clone();
        ready(fields.map(|fields| ConfigEdit::Put { list: LIST, name, fields })).boxed()
    })
    .await?;
    answer(&config, &name)
}

/// Remove the declaration of a tool
///
/// Removes the entry of this name from `toolbox.tools`, as `PUT` writes it. If the entry has an argument with a `value` or with
/// `hidden`, this needs its `ETag` in `If-Match`, as `PUT` does. Needs the role admin.
#[utoipa::path(
    delete,
    path = "/api/v1/tools/{name}/declaration",
    operation_id = "deleteDeclaration",
    tag = "tools",
    params(ToolName, IfRemovable),
    responses(
        (status = 204, description = "The entry is removed, and the change is in force."),
        Guarded,
        BadRequest,
        UnknownDeclaration,
        EditConflict,
        StaleEntry,
        UnreadEntry,
        EditRefused,
    )
)]
pub(crate) async fn delete(
    ReadyConfig(config): ReadyConfig,
    FromPath(ToolName { name }): FromPath<ToolName>,
    headers: HeaderMap,
) -> Result<StatusCode, ProblemResponse> {
    let edit = ConfigEdit::Remove { list: LIST, name: name.clone() };
    change_entry(&config, (LIST, &name), &headers, |present| {
        let released = released(present.as_ref(), &Map::new());
        let may_remove = released.is_empty() || names_version(&headers);
        let edit = if may_remove {
            Ok(edit.clone())
        } else {
            Err(unread_entry("removing this declaration gives up", &released))
        };
        ready(edit).boxed()
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Preview the declaration of a tool
///
/// The schema that callers would see and its cost, without changing anything. Needs the role operator.
#[utoipa::path(
    post,
    path = "/api/v1/tools/{name}/declaration/preview",
    operation_id = "previewDeclaration",
    tag = "tools",
    params(ToolName),
    request_body(content = ToolDeclaration, description = "The declaration."),
    responses(
        (status = 200, description = "The effect of the declaration.", body = DeclarationPreview),
        Guarded,
        TakesBody,
        EditConflict,
        EditRefused,
    )
)]
pub(crate) async fn preview(
    ReadyConfig(config): ReadyConfig,
    FromPath(ToolName { name }): FromPath<ToolName>,
    FromBody(body): FromBody<Map<String, Value>>,
) -> Result<Json<DeclarationPreview>, ProblemResponse> {
    let problem = |error| edit_problem(&config, (LIST, &name), &error);
    let present = config.entry(LIST, &name).map_err(problem)?;
    let fields = new_fields(body, present.as_ref())?;
    let released = released(present.as_ref(), &fields);
    let edits = [ConfigEdit::Put { list: LIST, name: name.clone(), fields }];
    let proposed = config.source().propose(&edits).map_err(problem)?;
    let plan = &proposed.loaded().plan;
    let named = plan.tools.iter().find(|entry| entry.name == name);
    // An entry with `type: mcp-tool` has the name that models see.
    let is_exposed = |entry: &&ToolEntry| entry.expose_as.as_deref() == Some(name.as_str());
    let entry = named.or_else(|| plan.tools.iter().find(is_exposed));
    // No server has the definition of a prompt tool.
    let is_prompt = entry.is_some_and(|entry| entry.prompt.is_some());
    let tool = if is_prompt {
        None
    } else {
        offered(config.board(), entry.map_or(&name, |entry| &entry.name))
    };
    let server_schema = tool
        .as_ref()
        .map_or_else(|| serde_json::json!({"type": "object"}), |it| it.input_schema.clone());
    let declared = entry.and_then(|entry| entry.arguments.as_deref()).unwrap_or_default();
    let mut warnings: Vec<_> =
        proposed.loaded().warnings.iter().map(|warning| warning.message.clone()).collect();
    if tool.is_none() && !is_prompt {
        warnings.push(format!("no server has the tool '{name}' at the moment"));
    }
    let found = config.board().contradictions(plan).into_iter();
    let found = found.filter(|it| plan.tools.get(it.entry) == entry);
    warnings.extend(found.map(|it| it.message));
    warnings.extend(released.iter().map(|name| {
        format!("the argument '{name}' is fixed or hidden now, and callers could give it then")
    }));
    warnings.extend(config.redirected(&proposed, &edits).iter().map(ToString::to_string));
    let input_schema = declare_arguments(&server_schema, declared);
    let description = entry.and_then(|entry| entry.description.clone());
    let description = description.or_else(|| tool.and_then(|tool| tool.description));
    let descriptor = ToolDescriptor {
        description,
        input_schema: JsonText::from(&input_schema),
        ..ToolDescriptor::named(&name)
    };
    // Counting tokens loads a tokenizer, which takes long the first time.
    let tokens = tokio::task::spawn_blocking(move || tokens(&descriptor));
    let tokens = tokens.await.unwrap_or_default();
    Ok(Json(DeclarationPreview { input_schema, warnings, tokens }))
}

/// Check arguments
///
/// Checks arguments as a call does, without calling the tool.
#[utoipa::path(
    post,
    path = "/api/v1/tools/{name}/check",
    operation_id = "checkArguments",
    tag = "tools",
    params(ToolName),
    request_body(
        content = CallBody,
        description = "The arguments.",
        example = json!({"arguments": {"text": "hello"}})
    ),
    responses(
        (status = 200, description = "Whether the arguments fit, and the errors.", body = ArgumentsCheck),
        Guarded,
        TakesBody,
        UnknownTool,
        WrongShape,
    )
)]
pub(crate) async fn check(
    Ready(board): Ready,
    ReadySessions(sessions): ReadySessions,
    Extension(principal): Extension<Principal>,
    FromPath(ToolName { name }): FromPath<ToolName>,
    FromBody(body): FromBody<CallBody>,
) -> Result<Json<ArgumentsCheck>, ProblemResponse> {
    if !finds_tool(&sessions, &principal, &name).await {
        return Err(unknown_tool(&name));
    }
    let faults =
        board.check_arguments(&name, &body.arguments).ok_or_else(|| unknown_tool(&name))?;
    let errors: Vec<_> = faults
        .into_iter()
        .map(|fault| FieldError { path: fault.path, message: fault.message })
        .collect();
    Ok(Json(ArgumentsCheck { ok: errors.is_empty(), errors }))
}

/// The fields of the entry as a request gives them.
fn new_fields(
    mut body: Map<String, Value>,
    present: Option<&WrittenEntry>,
) -> Result<Map<String, Value>, ProblemResponse> {
    let written = present.map(|entry| &entry.fields);
    let declared = written.map(declaration_of);
    if let Some(declared) = &declared {
        keep_hidden(&mut body, declared);
    }
    let mut errors = declared.as_ref().map(|it| shown_references(&body, it)).unwrap_or_default();
    let declared = declared.map(Value::Object);
    errors.extend(new_references(&Value::Object(body.clone()), declared.as_ref(), ""));
    if !errors.is_empty() {
        return Err(invalid(errors));
    }
    fields_of(body, written).map_err(|error| invalid(vec![error]))
}

/// The arguments that callers cannot give now, and could give if the entry had these fields.
fn released(present: Option<&WrittenEntry>, fields: &Map<String, Value>) -> Vec<String> {
    present.map(|present| released_arguments(&present.fields, fields)).unwrap_or_default()
}

/// The response to a change that releases arguments of an entry that its sender need not have read.
fn unread_entry(change: &str, released: &[String]) -> ProblemResponse {
    let detail = format!("{change} what is fixed or hidden: {}", released.join(", "));
    let mut response =
        ProblemResponse::new("unread_entry", StatusCode::PRECONDITION_REQUIRED, detail);
    let hint = "read the declaration and keep these arguments (a value may stay `***`), or send its ETag in `If-Match` to remove them";
    response.0.hint = Some(hint.into());
    response
}

fn answer(config: &Arc<LiveConfig>, name: &str) -> Result<Response, ProblemResponse> {
    let view = declaration(config, name)?;
    let tag = view.etag.as_deref().and_then(etag);
    let mut response = Json(view).into_response();
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// A tool as it is declared, as its server defines it, and as callers see it.
pub fn tool_declaration(
    config: &LiveConfig,
    name: &str,
) -> Result<ToolDeclarationView, Box<Problem>> {
    declaration(config, name).map_err(|response| response.0)
}

fn declaration(config: &LiveConfig, name: &str) -> Result<ToolDeclarationView, ProblemResponse> {
    let entry = config.entry(LIST, name);
    let entry = entry.map_err(|error| edit_problem(config, (LIST, name), &error))?;
    let board = config.board();
    let server = offered(board, name);
    let absent = if server.is_none() { absent_tool(board, name) } else { None };
    if entry.is_none() && server.is_none() && absent.is_none() {
        return Err(unknown_tool(name));
    }
    let catalog = board.catalog();
    let merged = find(&catalog, name).map(|tool| ToolDefinitionView {
        description: tool.descriptor.description.clone(),
        input_schema: tool.descriptor.input_schema.parse(),
    });
    let origins: BTreeMap<_, _> = entry
        .iter()
        .flat_map(|entry| &entry.places)
        .filter(|(pointer, _)| pointer != "/name")
        .map(|(pointer, place)| (declared_pointer(pointer), place.to_string()))
        .collect();
    let tag = entry.as_ref().map(|entry| entry.tag.clone());
    let declared = entry.map(|mut entry| {
        hide_tool_secrets(&mut entry.fields);
        Value::Object(declaration_of(&entry.fields))
    });
    Ok(ToolDeclarationView {
        name: name.to_owned(),
        declared,
        server,
        merged,
        absent,
        origins,
        etag: tag,
        revision: catalog.revision(),
    })
}

/// The tool of this name. An entry with `type: mcp-tool` has the name that models see.
fn find<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a CatalogTool> {
    catalog.resolve(name).ok().map(|tool| &**tool)
}

/// The server's own definition of a tool in the catalog.
fn offered(board: &Board, name: &str) -> Option<ToolDefinitionView> {
    let catalog = board.catalog();
    let CatalogTool { offered, descriptor, .. } = find(&catalog, name)?;
    Some(match offered {
        Some(offered) => ToolDefinitionView {
            description: offered.description.clone(),
            input_schema: offered.input_schema.parse(),
        },
        None => ToolDefinitionView {
            description: descriptor.description.clone(),
            input_schema: descriptor.input_schema.parse(),
        },
    })
}

/// The cost of a tool for each provider that can declare it, under a name that each accepts.
fn tokens(descriptor: &ToolDescriptor) -> BTreeMap<String, usize> {
    let name: String = descriptor
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    let rendered = Provider::ALL.into_iter().filter_map(|provider| {
        let tool = render_tool(provider, &NamedTool { name: &name, descriptor }).ok()?;
        Some((provider.as_str().to_owned(), tool.tokens()))
    });
    rendered.collect()
}
