//! Converts between rows and the model. Only this module knows the words and units of the tables.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard_model::{
    CallErrorKind, CallId, CallOutcome, CallRecord, CanonicalName, CheckHook, ContentCheckRecord,
    Era, Face, FoundServer, HttpTransport, JsonText, RecordedCaller, RecordedContent,
    RecordedPolicy, Secret, ServerName, ToolDescriptor,
};

use crate::row::Row;
use crate::statement::Statement;
use crate::{StoredClient, StoredKey, StoredSession};

type Insert<'q> = Statement<'q>;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const FACES: [Face; 4] = [Face::Cli, Face::Http, Face::Mcp, Face::Turn];

/// A count as the database stores it, saturating at the maximum.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count from the database; negative values become 0.
pub(crate) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// The era for a stored word, if this version knows it.
pub(crate) fn era_from_word(word: &str) -> Option<Era> {
    ERAS.into_iter().find(|era| era.as_str() == word)
}

/// Binds a record in the order of the columns of `calls`.
pub(crate) fn bind_call<'q>(insert: Insert<'q>, record: &'q CallRecord) -> Insert<'q> {
    insert
        .bind(&record.id.0)
        .bind(record.started_at_ms)
        .bind(record.face.as_str())
        .bind(record.tool.as_ref().map(|tool| tool.server().as_str()))
        .bind(record.tool.as_ref().map(CanonicalName::as_str))
        .bind(&record.requested)
        .bind(signed(record.revision))
        .bind(&record.argument_digest)
        .bind(record.outcome.as_str())
        .bind(record.message.as_deref())
        .bind(nanoseconds(record.wait))
        .bind(nanoseconds(record.run))
        .bind(signed(record.result_bytes))
        .bind(record.result_handle.as_deref())
        .bind(record.session.as_deref())
        .bind(record.caller.principal.as_deref())
        .bind(record.caller.client.as_deref())
        .bind(record.caller.person.as_deref())
        .bind(record.caller.owner.as_deref())
        .bind(record.caller.key.as_deref())
        .bind(record.caller.client_version.as_deref())
        .bind(record.caller.agent.as_deref())
        .bind(record.policy.as_ref().and_then(|policy| policy.configured.as_deref()))
        .bind(record.policy.as_ref().and_then(|policy| policy.mode.as_deref()))
        .bind(record.policy.as_ref().map(|policy| &*policy.digest))
}

/// Binds the contents of a record in the order of the columns of `call_contents`.
pub(crate) fn bind_contents<'q>(insert: Insert<'q>, record: &'q CallRecord) -> Insert<'q> {
    let mut insert = insert.bind(&record.id.0);
    let mut stored = 0;
    for content in [&record.arguments, &record.result] {
        let content = content.as_ref();
        stored += content.map_or(0, |content| content.text.len() as u64);
        insert = insert
            .bind(content.map(|content| content.text.as_str()))
            .bind(content.map(|content| signed(content.bytes)))
            .bind(content.map(|content| i64::from(content.is_cut)));
    }
    insert.bind(signed(stored))
}

fn content(row: &Row, columns: [&str; 3]) -> Result<Option<RecordedContent>, sqlx::Error> {
    let [text, size, cut] = columns;
    let Some(text) = row.try_get::<Option<String>>(text)? else { return Ok(None) };
    let bytes = unsigned(row.try_get::<Option<i64>>(size)?.unwrap_or_default());
    let is_cut = row.try_get::<Option<i64>>(cut)?.unwrap_or_default() != 0;
    Ok(Some(RecordedContent { text, bytes, is_cut }))
}

/// A record from a row of `calls`.
pub(crate) fn call_from_row(row: &Row) -> Result<CallRecord, sqlx::Error> {
    let face: String = row.try_get("face")?;
    let word: String = row.try_get("outcome")?;
    let mut message: Option<String> = row.try_get("message")?;
    let outcome = CallOutcome::from_word(&word).unwrap_or_else(|| {
        message = Some(match message.take() {
            Some(message) => format!("{word}: {message}"),
            None => word,
        });
        CallOutcome::Failed(CallErrorKind::Internal)
    });
    let shared = |column: &str| -> Result<Option<Arc<str>>, sqlx::Error> {
        Ok(row.try_get::<Option<&str>>(column)?.map(Arc::from))
    };
    Ok(CallRecord {
        id: CallId(row.try_get("id")?),
        started_at_ms: row.try_get("started_at_ms")?,
        face: FACES
            .into_iter()
            .find(|known| known.as_str() == face)
            .ok_or_else(|| meaningless(format!("there is no face {face:?}")))?,
        caller: RecordedCaller {
            principal: shared("principal")?,
            person: shared("person")?,
            owner: shared("owner")?,
            key: shared("key_name")?,
            client: shared("client")?,
            client_version: shared("client_version")?,
            agent: shared("agent")?,
        },
        session: shared("session")?,
        tool: canonical_name(row.try_get("server")?, row.try_get("tool")?)?,
        requested: row.try_get("requested")?,
        revision: unsigned(row.try_get("revision")?),
        policy: match shared("policy")? {
            Some(digest) => Some(RecordedPolicy {
                configured: row.try_get::<Option<String>>("configured")?.map(Into::into),
                mode: row.try_get::<Option<String>>("mode")?.map(Into::into),
                digest,
            }),
            None => None,
        },
        argument_digest: row.try_get("argument_digest")?,
        outcome,
        message,
        wait: Duration::from_nanos(unsigned(row.try_get("wait_ns")?)),
        run: Duration::from_nanos(unsigned(row.try_get("run_ns")?)),
        result_bytes: unsigned(row.try_get("result_bytes")?),
        result_handle: row.try_get("result_handle")?,
        arguments: content(row, ["arguments_text", "arguments_size", "arguments_cut"])?,
        result: content(row, ["result_text", "result_size", "result_cut"])?,
    })
}

/// A record from a row of `content_checks`.
pub(crate) fn check_from_row(row: &Row) -> Result<ContentCheckRecord, sqlx::Error> {
    let hook: &str = row.try_get("hook")?;
    let principal: Option<&str> = row.try_get("principal")?;
    Ok(ContentCheckRecord {
        id: row.try_get("id")?,
        at_ms: row.try_get("at_ms")?,
        hook: CheckHook::from_word(hook)
            .ok_or_else(|| meaningless(format!("there is no hook {hook:?}")))?,
        verdict: row.try_get("verdict")?,
        blocked: row.try_get::<i64>("blocked")? != 0,
        reason: row.try_get("reason")?,
        principal: principal.map(Arc::from),
        conversation: row.try_get("conversation")?,
        message: row.try_get("message")?,
        tool: canonical_name(row.try_get("server")?, row.try_get("tool")?)?,
        messages: unsigned(row.try_get("messages")?),
        bytes: unsigned(row.try_get("bytes")?),
        took: Duration::from_nanos(unsigned(row.try_get("took_ns")?)),
    })
}

/// Binds a descriptor in the order of the columns of `remembered_tools`, from `name` on.
pub(crate) fn bind_tool<'q>(insert: Insert<'q>, tool: &'q ToolDescriptor) -> Insert<'q> {
    insert
        .bind(&tool.name)
        .bind(tool.title.as_deref())
        .bind(tool.description.as_deref())
        .bind(tool.input_schema.as_str())
        .bind(tool.output_schema.as_ref().map(JsonText::as_str))
        .bind(tool.annotations.as_ref().map(JsonText::as_str))
        .bind(tool.extra.as_ref().map(JsonText::as_str))
}

/// A descriptor from a row of `remembered_tools`.
pub(crate) fn tool_from_row(row: &Row) -> Result<ToolDescriptor, sqlx::Error> {
    let name: String = row.try_get("name")?;
    let json = |column: &str| -> Result<Option<JsonText>, sqlx::Error> {
        let text: Option<&str> = row.try_get(column)?;
        let parsed = text.map(JsonText::from_text).transpose();
        parsed.map_err(|error| meaningless(format!("{column} of {name:?}: {error}")))
    };
    let schema = json("input_schema")?;
    Ok(ToolDescriptor {
        title: row.try_get("title")?,
        description: row.try_get("description")?,
        input_schema: schema.unwrap_or_else(|| JsonText::from(&Value::Null)),
        output_schema: json("output_schema")?,
        annotations: json("annotations")?,
        extra: json("extra")?,
        ..ToolDescriptor::named(name)
    })
}

/// A key from a row of `api_keys`.
pub(crate) fn key_from_row(row: &Row) -> Result<StoredKey, sqlx::Error> {
    Ok(StoredKey {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        role: row.try_get("role")?,
        created_at_ms: row.try_get("created_at_ms")?,
        last_used_at_ms: row.try_get("last_used_at_ms")?,
        revoked_at_ms: row.try_get("revoked_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        user: row.try_get("user_label")?,
        access: row.try_get("access")?,
    })
}

/// A session from a row of `sessions`.
pub(crate) fn session_from_row(row: &Row) -> Result<StoredSession, sqlx::Error> {
    Ok(StoredSession {
        id: row.try_get("id")?,
        kind: row.try_get("kind")?,
        owner: row.try_get("owner")?,
        title: row.try_get("title")?,
        provider: row.try_get("provider")?,
        model: row.try_get("model")?,
        state: row.try_get("state")?,
        tools_revision: unsigned(row.try_get("tools_revision")?),
        snapshot: row.try_get("snapshot")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        version: unsigned(row.try_get("version")?),
    })
}

/// A client from a row of `gateway_sessions`.
pub(crate) fn client_from_row(row: &Row) -> Result<StoredClient, sqlx::Error> {
    Ok(StoredClient {
        id: row.try_get("id")?,
        kind: row.try_get("kind")?,
        owner: row.try_get("owner")?,
        session: row.try_get("session")?,
        state: row.try_get("state")?,
        created_at_ms: row.try_get("created_at_ms")?,
        last_seen_at_ms: row.try_get("last_seen_at_ms")?,
    })
}

/// A byte string of 32 bytes, such as a hash or a secret.
pub(crate) fn bytes32(column: &str, bytes: Vec<u8>) -> Result<[u8; 32], sqlx::Error> {
    let wrong = |bytes: Vec<u8>| meaningless(format!("{column} has {} bytes, not 32", bytes.len()));
    bytes.try_into().map_err(wrong)
}

/// Rebuilds a canonical name from its two columns; it is never split at a dot.
pub(crate) fn canonical_name(
    server: Option<String>,
    whole: Option<String>,
) -> Result<Option<CanonicalName>, sqlx::Error> {
    let (Some(server), Some(whole)) = (server, whole) else { return Ok(None) };
    let tool = whole.strip_prefix(&server).and_then(|rest| rest.strip_prefix('.'));
    let tool = tool.ok_or_else(|| meaningless(format!("{whole:?} is no tool of {server:?}")))?;
    Ok(Some(CanonicalName::new(&ServerName::new(server.as_str()), tool)))
}

/// Exact up to 292 years.
pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn meaningless(what: String) -> sqlx::Error {
    sqlx::Error::Decode(what.into())
}

/// Found servers as a JSON array.
pub(crate) fn found_servers_json(servers: &[FoundServer]) -> String {
    let entry = |server: &FoundServer| {
        let headers = server.headers.iter();
        let headers: Map<_, _> =
            headers.map(|(name, value)| (name.clone(), value.expose().into())).collect();
        json!({
            "name": server.name,
            "url": server.url.as_str(),
            "transport": server.transport.as_str(),
            "headers": headers,
        })
    };
    servers.iter().map(entry).collect::<Value>().to_string()
}

/// Found servers from a JSON array, without those that this version cannot read.
pub(crate) fn found_servers_from_json(text: &str) -> Vec<FoundServer> {
    let entries: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    entries.iter().filter_map(found_server_from_json).collect()
}

fn found_server_from_json(entry: &Value) -> Option<FoundServer> {
    let text = |member: &str| entry.get(member).and_then(Value::as_str);
    let transports = [HttpTransport::StreamableHttp, HttpTransport::Sse];
    let word = text("transport")?;
    let headers = entry.get("headers").and_then(Value::as_object)?.iter();
    let header =
        |(name, value): (&String, &Value)| Some((name.clone(), Secret::new(value.as_str()?)));
    Some(FoundServer {
        name: text("name")?.to_owned(),
        url: text("url")?.parse().ok()?,
        transport: transports.into_iter().find(|transport| transport.as_str() == word)?,
        headers: headers.map(header).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile when the model gets a new outcome; `CallOutcome::ALL` and the table above need it then, too.
    fn place(outcome: CallOutcome) -> usize {
        use CallErrorKind as K;
        match outcome {
            CallOutcome::Ok => 0,
            CallOutcome::ToolError => 1,
            CallOutcome::Failed(kind) => match kind {
                K::UnknownTool => 2,
                K::InvalidArguments => 3,
                K::QueueTimeout => 4,
                K::Timeout => 5,
                K::InactivityTimeout => 6,
                K::Cancelled => 7,
                K::Unavailable => 8,
                K::Upstream => 9,
                K::Blocked => 10,
                K::NeedsSignIn => 11,
                K::RateLimited => 12,
                K::Internal => 13,
            },
        }
    }

    #[test]
    fn every_word_of_the_model_is_known() {
        assert_eq!(CallOutcome::ALL.map(place), std::array::from_fn(|n| n));
        assert_eq!(
            FACES.map(|face| match face {
                Face::Cli => 0,
                Face::Http => 1,
                Face::Mcp => 2,
                Face::Turn => 3,
            }),
            [0, 1, 2, 3]
        );
        assert_eq!(era_from_word("legacy"), Some(Era::Legacy));
        assert_eq!(era_from_word("modern"), Some(Era::Modern));
        assert_eq!(era_from_word("postmodern"), None);
    }
}
