//! Reads a server's complete lists, page by page and within limits, and keeps the entries as the server wrote them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use switchboard_model::{
    ConnectError, ConnectErrorKind, JsonText, QuarantinedTool, ToolDescriptor, UpstreamToolList,
};
use switchboard_protocol::{
    EntryKind, Mirrors, check_entry, quoted, repair_tool_annotations, repair_tool_members,
};
use switchboard_schema::prepare_for_lists;

use crate::bounds::{KEPT_REASONS, ListBounds, MAX_CURSOR_BYTES, MAX_LIST_PAGES};
use crate::connection::Connection;
use crate::envelope::ResponseError;
use crate::request::{Listed, ListedEntries, RawResult};

impl Connection {
    /// Reads all pages, or fails: a partial list is worse than the previous complete one.
    pub(crate) async fn read_tools(&self) -> Result<UpstreamToolList, ConnectError> {
        let mut reader = ToolReader {
            checks_mirrors: self.mirrors_arguments,
            size: Size::within(self.list_bounds),
            ..Default::default()
        };
        self.read_pages("tools/list", "tools", |page| reader.read_page(page)).await?;
        Ok(reader.list)
    }

    /// Reads all pages of a list whose entries are only forwarded.
    pub(crate) async fn list_raw(
        &self,
        method: &'static str,
        member: &'static str,
        kind: EntryKind,
    ) -> Result<ListedEntries, ConnectError> {
        let (mut list, mut size) = (ListedEntries::default(), Size::within(self.list_bounds));
        let read = self.read_pages(method, member, |page| {
            for item in items(page, member)? {
                size.count(member)?;
                match check_entry(kind, item.get()) {
                    Ok(entry) => {
                        size.add(entry.key.len() + item.get().len(), member)?;
                        list.note_repairs(&entry);
                        let json = entry.json.map(|json| JsonText::from_text(&json));
                        let json = json.and_then(Result::ok).unwrap_or_else(|| item.into());
                        list.entries.push(Listed { key: entry.key, json });
                    }
                    Err(reason) => list.leave_out(reason),
                }
            }
            Ok(())
        });
        match read.await {
            Ok(()) => Ok(list),
            Err(error) => Err(self.explain(error).await),
        }
    }

    async fn read_pages(
        &self,
        method: &'static str,
        what: &'static str,
        mut read: impl FnMut(&ObjectMembers<'_>) -> Result<(), ConnectError>,
    ) -> Result<(), ConnectError> {
        let mut cursors = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_LIST_PAGES {
            let page = self.fetch_page(method, what, cursor.as_deref()).await?;
            let members = ObjectMembers::of_text(page.as_str());
            read(&members)?;
            let Some(next) = members.text("nextCursor") else { return Ok(()) };
            if next.len() > MAX_CURSOR_BYTES {
                return Err(broken(format!(
                    "the server's cursor is larger than {MAX_CURSOR_BYTES} bytes"
                )));
            }
            if !cursors.insert(next.clone()) {
                let shown: String = next.chars().take(60).collect();
                return Err(broken(format!(
                    "the server's list goes in circles: cursor {shown:?} came twice"
                )));
            }
            cursor = Some(next);
        }
        Err(broken(format!(
            "the server's list has more than {MAX_LIST_PAGES} pages, so it is not used"
        )))
    }

    async fn fetch_page(
        &self,
        method: &'static str,
        what: &str,
        cursor: Option<&str>,
    ) -> Result<RawResult, ConnectError> {
        let params = cursor.map(|cursor| format!(r#""cursor":{}"#, quoted(cursor)));
        match self.ask_for_us(method, params.unwrap_or_default()).await {
            Ok(page) => Ok(page),
            Err(ResponseError::Lost(error)) => Err(error),
            Err(ResponseError::Rpc(error)) => {
                let (what, message) = (in_words(what), error.message);
                Err(broken(format!("the server refused to list its {what}: {message}")))
            }
        }
    }
}

/// The members of a JSON object, in order. Other values have none.
#[derive(Debug, Default)]
struct ObjectMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> ObjectMembers<'a> {
    fn of_text(text: &'a str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn of(item: &'a RawValue) -> Self {
        Self::of_text(item.get())
    }

    /// Of two members with the same name the last one counts.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    fn object(&self, name: &str) -> Option<JsonText> {
        self.get(name).filter(|value| value.get().starts_with('{')).map(JsonText::from)
    }

    /// A JSON object without the members of these names.
    fn without(&self, names: &[&str]) -> Option<JsonText> {
        let rest = self.0.iter().filter(|(key, _)| !names.contains(&key.as_ref()));
        let rest: Vec<_> =
            rest.map(|(key, value)| format!("{}:{}", quoted(key), value.get())).collect();
        let text = (!rest.is_empty()).then(|| format!("{{{}}}", rest.join(",")))?;
        serde_json::from_str::<&RawValue>(&text).ok().map(JsonText::from)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = ObjectMembers<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(ObjectMembers(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// An object key, copied only if it contains escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

fn items<'a>(page: &ObjectMembers<'a>, member: &str) -> Result<Vec<&'a RawValue>, ConnectError> {
    let list = page.get(member).and_then(|list| serde_json::from_str(list.get()).ok());
    let method = if member == "resourceTemplates" { "resources/templates" } else { member };
    let missing =
        || broken(format!("the answer to {method}/list has no list of {}", in_words(member)));
    list.ok_or_else(missing)
}

fn in_words(member: &str) -> &str {
    if member == "resourceTemplates" { "resource templates" } else { member }
}

/// The size of a listing so far.
#[derive(Debug, Default)]
struct Size {
    bounds: ListBounds,
    items: usize,
    bytes: usize,
    left_out: usize,
}

impl Size {
    fn within(bounds: ListBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    fn count(&mut self, member: &str) -> Result<(), ConnectError> {
        self.items += 1;
        let most = self.bounds.items;
        if self.items > most {
            let what = in_words(member);
            return Err(broken(format!("the server lists more than {most} {what}")));
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize, member: &str) -> Result<(), ConnectError> {
        self.bytes += bytes;
        let most = self.bounds.bytes;
        if self.bytes > most {
            let what = in_words(member);
            return Err(broken(format!("the server's {what} take more than {most} bytes")));
        }
        Ok(())
    }
}

/// A list of tools while it is being read.
#[derive(Debug, Default)]
struct ToolReader {
    checks_mirrors: bool,
    list: UpstreamToolList,
    size: Size,
}

impl ToolReader {
    fn read_page(&mut self, page: &ObjectMembers<'_>) -> Result<(), ConnectError> {
        for item in items(page, "tools")? {
            self.size.count("tools")?;
            let members = ObjectMembers::of(item);
            let name = read_name(&members);
            let read = name.clone().and_then(|name| read_tool(name, &members));
            match read.and_then(|tool| self.check_mirrors(tool)) {
                Ok(tool) => {
                    self.size.add(kept_bytes(&tool), "tools")?;
                    self.list.tools.push(tool);
                }
                Err(reason) => self.quarantine(name.ok(), reason),
            }
        }
        let ttl = page.get("ttlMs").and_then(|ttl| serde_json::from_str(ttl.get()).ok());
        let ttl = ttl.map(Duration::from_millis);
        self.list.ttl = match (self.list.ttl, ttl) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Ok(())
    }

    fn quarantine(&mut self, tool: Option<String>, reason: String) {
        self.size.left_out += 1;
        self.list.quarantined.truncate(KEPT_REASONS - 1);
        let reason = match self.size.left_out {
            ..KEPT_REASONS => reason,
            many => format!("{reason}; {many} tools are quarantined in all"),
        };
        self.list.quarantined.push(QuarantinedTool { tool, reason });
    }

    /// Rejects a tool whose header annotations are invalid: its required headers could not be sent.
    fn check_mirrors(&self, tool: ToolDescriptor) -> Result<ToolDescriptor, String> {
        // Most schemas have no such annotation and need no parsing.
        if self.checks_mirrors && tool.input_schema.as_str().contains("x-mcp-header") {
            Mirrors::of_schema(&tool.input_schema.parse())
                .map_err(|reason| format!("its inputSchema: {reason}"))?;
        }
        Ok(tool)
    }
}

/// Members with a field of their own, and `execution`, which is not supported.
const OWN_MEMBERS: [&str; 7] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"];

/// The name of a tool; an error if it is missing or unusable.
fn read_name(tool: &ObjectMembers<'_>) -> Result<String, String> {
    let Some(name) = tool.text("name").filter(|name| !name.is_empty()) else {
        return Err("it has no name".into());
    };
    if name.len() > 512 || name.chars().any(char::is_control) {
        let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
        return Err(format!("its name '{shown}' is too long or has control characters"));
    }
    Ok(name)
}

/// Reads one tool; an error says why it cannot be used.
fn read_tool(name: String, tool: &ObjectMembers<'_>) -> Result<ToolDescriptor, String> {
    let mut repairs = Vec::new();
    let own = tool.get("inputSchema").filter(|schema| schema.get() != "null").map(JsonText::from);
    if own.is_none() {
        repairs.push("inputSchema: `type: object` was added".to_owned());
    }
    let input_schema =
        own.unwrap_or_else(|| JsonText::from(&serde_json::json!({"type": "object"})));
    let mut text = |member: &str| {
        let text = tool.text(member);
        if text.is_none() && tool.get(member).is_some() {
            repairs.push(format!("`{member}` was left out: it is not a string"));
        }
        text
    };
    let (title, description) = (text("title"), text("description"));
    for member in ["outputSchema", "annotations"] {
        if tool.get(member).is_some() && tool.object(member).is_none() {
            repairs.push(format!("`{member}` was left out: it is not an object"));
        }
    }
    // `execution` is never listed, because tasks are not supported. A malformed one, which strict clients would reject,
    // counts as a repair.
    if tool.get("execution").is_some_and(|execution| !is_execution(execution)) {
        repairs.push("`execution` was left out: it is malformed".into());
    }
    let annotations = tool.object("annotations");
    let annotations = repaired(annotations, "annotations", repair_tool_annotations, &mut repairs);
    let extra = tool.without(&OWN_MEMBERS);
    let extra = repaired(extra, "further members", repair_tool_members, &mut repairs);
    let mut tool = ToolDescriptor {
        title,
        description,
        input_schema,
        output_schema: tool.object("outputSchema"),
        annotations,
        extra,
        repairs,
        ..ToolDescriptor::named(name)
    };
    prepare_for_lists(&mut tool)?;
    Ok(tool)
}

/// Whether strict clients accept it as the `execution` of a tool.
fn is_execution(execution: &RawValue) -> bool {
    let members: Option<Map<String, Value>> = serde_json::from_str(execution.get()).ok();
    members.is_some_and(|members| match members.get("taskSupport") {
        None => true,
        Some(support) => matches!(support.as_str(), Some("forbidden" | "optional" | "required")),
    })
}

/// An object as the server wrote it, or repaired so that strict clients accept it.
fn repaired(
    object: Option<JsonText>,
    what: &str,
    repair: impl Fn(&mut Map<String, Value>, &mut Vec<String>),
    repairs: &mut Vec<String>,
) -> Option<JsonText> {
    let object = object?;
    let Ok(Value::Object(mut members)) = serde_json::from_str(object.as_str()) else {
        repairs.push(format!("{what} were left out: they cannot be read"));
        return None;
    };
    let before = repairs.len();
    repair(&mut members, repairs);
    if repairs.len() == before {
        return Some(object);
    }
    (!members.is_empty()).then(|| JsonText::from(&Value::Object(members)))
}

fn kept_bytes(tool: &ToolDescriptor) -> usize {
    let texts = [&tool.title, &tool.description].into_iter().flatten().map(String::len);
    let documents = [&tool.listed_schema, &tool.output_schema, &tool.annotations, &tool.extra];
    let documents = documents.into_iter().flatten();
    let documents = documents.chain([&tool.input_schema]).map(|json| json.as_str().len());
    tool.name.len() + texts.chain(documents).sum::<usize>()
}

fn broken(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use switchboard_test_support::{Fate, Malformed, malformed_tools};

    use super::*;
    use crate::bounds::{MAX_LIST_BYTES, MAX_TOOLS_PER_SERVER};

    fn read(page: &Value, reader: &mut ToolReader) -> Result<(), ConnectError> {
        reader.read_page(&ObjectMembers::of_text(&page.to_string()))
    }

    #[test]
    fn one_bad_tool_does_not_cost_the_others() {
        let page = json!({"ttlMs": 500, "tools": [
            {"name": "good", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "bare", "title": 7, "outputSchema": [1], "annotations": "none"},
            {"description": "nameless"},
            {"name": "a\u{7}b"},
            {"name": "listed", "inputSchema": [1]},
            17,
        ]});
        let mut reader = ToolReader::default();
        reader.list.ttl = Some(Duration::from_secs(9));
        read(&page, &mut reader).unwrap();
        let names: Vec<_> = reader.list.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "bare"]);
        let bare = &reader.list.tools[1];
        let repairs = bare.repairs.clone();
        assert_eq!(*bare, ToolDescriptor { repairs, ..ToolDescriptor::named("bare") });
        assert_eq!(
            bare.repairs,
            [
                "inputSchema: `type: object` was added",
                "`title` was left out: it is not a string",
                "`outputSchema` was left out: it is not an object",
                "`annotations` was left out: it is not an object",
            ]
        );
        let quarantined = reader.list.quarantined.iter();
        let quarantined: Vec<_> =
            quarantined.map(|it| (it.tool.as_deref(), it.reason.as_str())).collect();
        assert_eq!(
            quarantined,
            [
                (None, "it has no name"),
                (None, "its name 'a\\u{7}b' is too long or has control characters"),
                (Some("listed"), "its inputSchema is a list, not an object"),
                (None, "it has no name"),
            ]
        );
        assert_eq!(reader.list.ttl, Some(Duration::from_millis(500)));
    }

    /// A tool as lists of the stateless era show it, without its name.
    fn listed(tool: &ToolDescriptor) -> Value {
        let mut members = Map::new();
        let texts = [("title", &tool.title), ("description", &tool.description)];
        for (member, text) in texts {
            members.extend(text.as_ref().map(|text| (member.to_owned(), json!(text))));
        }
        members.insert("inputSchema".into(), tool.shown_schema().parse());
        let documents = [("outputSchema", &tool.output_schema), ("annotations", &tool.annotations)];
        for (member, json) in documents {
            members.extend(json.as_ref().map(|json| (member.to_owned(), json.parse())));
        }
        let extra = tool.extra.as_ref().map(JsonText::parse);
        members.extend(extra.and_then(|extra| extra.as_object().cloned()).into_iter().flatten());
        Value::Object(members)
    }

    #[test]
    fn a_malformed_tool_is_repaired_for_lists_or_quarantined_alone() {
        for Malformed { case, entry, fate } in malformed_tools() {
            let good = json!({"name": "good", "inputSchema": {"type": "object"}});
            let mut reader = ToolReader::default();
            read(&json!({ "tools": [&entry, good] }), &mut reader).unwrap();
            let (quarantined, mut tools) = (reader.list.quarantined, reader.list.tools.into_iter());
            match fate {
                Fate::Quarantined(reason) => {
                    assert_eq!(quarantined.len(), 1, "{case}");
                    assert_eq!(quarantined[0].reason, reason, "{case}");
                }
                Fate::Listed(expected) => {
                    let tool = tools.next().unwrap();
                    let mut written = entry.clone();
                    written.as_object_mut().unwrap().shift_remove("name");
                    assert_eq!(
                        tool.repairs.is_empty(),
                        written == expected,
                        "{case}: each repair is told"
                    );
                    assert_eq!((tool.name.as_str(), listed(&tool)), (case, expected), "{case}");
                    assert_eq!(quarantined, [], "{case}");
                }
            }
            let good = tools.next().unwrap();
            assert_eq!((good.name.as_str(), good.repairs.len()), ("good", 0), "{case}");
        }
    }

    #[test]
    fn what_a_tool_says_is_kept_as_it_was_written() {
        let page = r#"{"tools": [{
            "name": "t", "inputSchema": {"type" : "object", "maximum": 1.0},
            "_meta": { "k": 1e2 }, "execution": {"taskSupport": "optional"}, "icons": [], "a\"b": null
        }]}"#;
        let mut reader = ToolReader::default();
        reader.read_page(&ObjectMembers::of_text(page)).unwrap();
        let tool = &reader.list.tools[0];
        assert_eq!(tool.input_schema.as_str(), r#"{"type" : "object", "maximum": 1.0}"#);
        let extra = tool.extra.as_ref().unwrap().as_str();
        assert_eq!(extra, r#"{"_meta":{ "k": 1e2 },"icons":[],"a\"b":null}"#);
    }

    #[test]
    fn tools_with_bad_annotations_are_left_out_where_they_matter() {
        let header = |name: &str| json!({"type": "string", "x-mcp-header": name});
        let page = json!({"tools": [
            {"name": "good", "inputSchema": {"type": "object", "properties": {"a": header("A")}}},
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": header("a b")}}},
        ]});
        for (checks_mirrors, kept) in [(true, 1), (false, 2)] {
            let mut reader = ToolReader { checks_mirrors, ..Default::default() };
            read(&page, &mut reader).unwrap();
            assert_eq!(reader.list.tools.len(), kept);
            let reason = "its inputSchema: x-mcp-header \"a b\" is not a valid header name";
            assert_eq!(
                reader.list.quarantined.first().is_some_and(|it| it.reason == reason),
                checks_mirrors
            );
        }
    }

    #[test]
    fn an_answer_without_tools_is_an_error() {
        let mut reader = ToolReader::default();
        let error = read(&json!({"items": []}), &mut reader).unwrap_err();
        assert_eq!(error.message, "the answer to tools/list has no list of tools");
        assert!(read(&json!({"tools": {}}), &mut reader).is_err());
        let templates = items(&ObjectMembers::default(), "resourceTemplates").unwrap_err().message;
        assert_eq!(
            templates,
            "the answer to resources/templates/list has no list of resource templates"
        );
    }

    #[test]
    fn a_list_is_bounded_in_tools_bytes_and_reasons() {
        let read = |tools: Vec<Value>| {
            let mut reader = ToolReader::default();
            read(&json!({ "tools": tools }), &mut reader).map(|()| reader.list)
        };
        assert!(read(vec![json!({}); MAX_TOOLS_PER_SERVER + 1]).is_err());
        let fat = json!({"name": "fat", "description": "x".repeat(MAX_LIST_BYTES)});
        assert!(read(vec![fat]).is_err());
        let nameless = read(vec![json!({}); 300]).unwrap();
        assert_eq!(nameless.quarantined.len(), KEPT_REASONS);
        let last = nameless.quarantined.last().unwrap().to_string();
        assert_eq!(last, "it has no name; 300 tools are quarantined in all");
    }
}
