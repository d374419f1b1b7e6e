//! Reads a server's whole lists, page by page, within bounds, and keeps what is in them as it was written.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use switchboard_model::{JsonText, ToolDescriptor, ToolList};
use switchboard_protocol::{Mirrors, quoted};

use crate::bounds::{KEPT_REASONS, ListBounds, MAX_CURSOR_BYTES, MAX_LIST_PAGES};
use crate::connection::Connection;
use crate::envelope::Failure;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::exchange::{Listed, RawResult};

impl Connection {
    /// All pages, or an error: half a list is worse than the last whole one.
    pub(crate) async fn read_tools(&self) -> Result<ToolList, ConnectError> {
        let mut reader = ToolReader {
            checks_mirrors: self.mirrors_arguments,
            size: Size::within(self.list_bounds),
            ..Default::default()
        };
        self.read_pages("tools/list", "tools", |page| reader.read_page(page)).await?;
        Ok(reader.list)
    }

    /// All pages of a list that is only passed on.
    pub(crate) async fn list_raw(
        &self,
        method: &'static str,
        member: &'static str,
        key: &'static str,
    ) -> Result<Vec<Listed>, ConnectError> {
        let (mut list, mut size) = (Vec::new(), Size::within(self.list_bounds));
        let read = self.read_pages(method, member, |page| {
            for item in items(page, member)? {
                size.count(member)?;
                // What has no name cannot be asked for.
                if let Some(key) = Members::of(item).text(key) {
                    size.add(key.len() + item.get().len(), member)?;
                    list.push(Listed { key, json: JsonText::from(item) });
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
        mut read: impl FnMut(&Members<'_>) -> Result<(), ConnectError>,
    ) -> Result<(), ConnectError> {
        let mut cursors = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_LIST_PAGES {
            let page = self.fetch_page(method, what, cursor.as_deref()).await?;
            let members = Members::of_text(page.as_str());
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
        Err(broken(format!("the server's list has more than {MAX_LIST_PAGES} pages")))
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
            Err(Failure::Lost(error)) => Err(error),
            Err(Failure::Rpc(error)) => {
                let (what, message) = (in_words(what), error.message);
                Err(broken(format!("the server refused to list its {what}: {message}")))
            }
        }
    }
}

/// The members of an object, in order. Anything else has none.
#[derive(Debug, Default)]
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    fn of_text(text: &'a str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn of(item: &'a RawValue) -> Self {
        Self::of_text(item.get())
    }

    /// Of two members of one name the last one counts, as everywhere.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    fn object(&self, name: &str) -> Option<JsonText> {
        self.get(name).filter(|value| value.get().starts_with('{')).map(JsonText::from)
    }

    /// An object of the members that have none of these names.
    fn without(&self, names: &[&str]) -> Option<JsonText> {
        let rest = self.0.iter().filter(|(key, _)| !names.contains(&key.as_ref()));
        let rest: Vec<_> =
            rest.map(|(key, value)| format!("{}:{}", quoted(key), value.get())).collect();
        let text = (!rest.is_empty()).then(|| format!("{{{}}}", rest.join(",")))?;
        serde_json::from_str::<&RawValue>(&text).ok().map(JsonText::from)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A key that is copied only when it is written with escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

fn items<'a>(page: &Members<'a>, member: &str) -> Result<Vec<&'a RawValue>, ConnectError> {
    let list = page.get(member).and_then(|list| serde_json::from_str(list.get()).ok());
    let method = if member == "resourceTemplates" { "resources/templates" } else { member };
    let missing =
        || broken(format!("the answer to {method}/list has no list of {}", in_words(member)));
    list.ok_or_else(missing)
}

fn in_words(member: &str) -> &str {
    if member == "resourceTemplates" { "resource templates" } else { member }
}

/// How much a listing holds so far.
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

/// A list of tools as far as it has been read.
#[derive(Debug, Default)]
struct ToolReader {
    checks_mirrors: bool,
    list: ToolList,
    size: Size,
}

impl ToolReader {
    fn read_page(&mut self, page: &Members<'_>) -> Result<(), ConnectError> {
        for item in items(page, "tools")? {
            self.size.count("tools")?;
            let read = read_tool(&Members::of(item)).and_then(|tool| self.check_mirrors(tool));
            match read {
                Ok(tool) => {
                    self.size.add(kept_bytes(&tool), "tools")?;
                    self.list.tools.push(tool);
                }
                Err(reason) => self.leave_out(reason),
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

    fn leave_out(&mut self, reason: String) {
        self.size.left_out += 1;
        self.list.dropped.truncate(KEPT_REASONS - 1);
        self.list.dropped.push(match self.size.left_out {
            ..KEPT_REASONS => reason,
            many => format!("{reason}; {many} tools were left out in all"),
        });
    }

    /// A tool whose headers we could not send is one that we cannot call.
    fn check_mirrors(&self, tool: ToolDescriptor) -> Result<ToolDescriptor, String> {
        // Most schemas have none, and are never made a tree.
        if self.checks_mirrors && tool.input_schema.as_str().contains("x-mcp-header") {
            Mirrors::of_schema(&tool.input_schema.parse())
                .map_err(|reason| format!("the inputSchema of '{}': {reason}", tool.name))?;
        }
        Ok(tool)
    }
}

/// What has a field of its own, or is not offered: we have no tasks.
const OWN_MEMBERS: [&str; 7] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"];

/// A tool as far as it can be used; an error says why it cannot.
fn read_tool(tool: &Members<'_>) -> Result<ToolDescriptor, String> {
    let Some(name) = tool.text("name").filter(|name| !name.is_empty()) else {
        return Err("it has no name".into());
    };
    if name.len() > 512 || name.chars().any(char::is_control) {
        let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
        return Err(format!("its name '{shown}' is too long or has control characters"));
    }
    let input_schema = match tool.get("inputSchema").map(|schema| (schema, schema.get())) {
        None | Some((_, "null")) => JsonText::from(&serde_json::json!({"type": "object"})),
        Some((schema, text)) if text.starts_with('{') || text == "true" => JsonText::from(schema),
        Some(_) => return Err(format!("the inputSchema of '{name}' is not an object")),
    };
    Ok(ToolDescriptor {
        name,
        title: tool.text("title"),
        description: tool.text("description"),
        input_schema,
        output_schema: tool.object("outputSchema"),
        annotations: tool.object("annotations"),
        extra: tool.without(&OWN_MEMBERS),
    })
}

fn kept_bytes(tool: &ToolDescriptor) -> usize {
    let texts = [&tool.title, &tool.description].into_iter().flatten().map(String::len);
    let documents = [&tool.output_schema, &tool.annotations, &tool.extra].into_iter().flatten();
    let documents = documents.chain([&tool.input_schema]).map(|json| json.as_str().len());
    tool.name.len() + texts.chain(documents).sum::<usize>()
}

fn broken(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Protocol, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::bounds::{MAX_LIST_BYTES, MAX_TOOLS_PER_SERVER};

    fn read(page: &Value, reader: &mut ToolReader) -> Result<(), ConnectError> {
        reader.read_page(&Members::of_text(&page.to_string()))
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
        assert_eq!(reader.list.tools[1], ToolDescriptor::named("bare"));
        assert_eq!(
            reader.list.dropped,
            [
                "it has no name",
                "its name 'a\\u{7}b' is too long or has control characters",
                "the inputSchema of 'listed' is not an object",
                "it has no name"
            ]
        );
        assert_eq!(reader.list.ttl, Some(Duration::from_millis(500)));
    }

    #[test]
    fn what_a_tool_says_is_kept_as_it_was_written() {
        let page = r#"{"tools": [{
            "name": "t", "inputSchema": {"type" : "object", "maximum": 1.0},
            "_meta": { "k": 1e2 }, "execution": {"taskSupport": "optional"}, "icons": [], "a\"b": null
        }]}"#;
        let mut reader = ToolReader::default();
        reader.read_page(&Members::of_text(page)).unwrap();
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
            let reason = "the inputSchema of 'bad': x-mcp-header \"a b\" is no name of a header";
            assert_eq!(
                reader.list.dropped.first().is_some_and(|said| said == reason),
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
        let templates = items(&Members::default(), "resourceTemplates").unwrap_err().message;
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
        let nameless = read(vec![json!({}); 100]).unwrap();
        assert_eq!(nameless.dropped.len(), KEPT_REASONS);
        assert_eq!(nameless.dropped[19], "it has no name; 100 tools were left out in all");
    }
}
