//! The meta-tools of the dynamic exposure mode: their definitions and results.

use serde_json::{Map, Value, json};
use switchboard_model::{ExposureMode, JsonText, ToolDescriptor};
use switchboard_protocol::push_string;

use crate::definition::{ListEra, render_tool};
use crate::index::Entry;
use crate::selection::Selection;
use crate::toolset::Toolset;
use crate::view::{View, push_names};

/// Number of matches that `search_tools` returns by default.
const DEFAULT_MATCHES: u64 = 8;
const MAX_MATCHES: u64 = 50;
/// Maximum length of a query in characters; the rest is ignored.
const MAX_QUERY: usize = 1_000;
/// The member that marks a tool as switched off in the session.
const SWITCHED_OFF: &str = "switchedOff";
/// Maximum characters of a description in the list of toolsets.
const MAX_SUMMARY_CHARS: usize = 200;

/// A meta-tool: it lists, describes, switches or calls the other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaTool {
    EnableToolset,
    DisableToolset,
    ListToolsets,
    DescribeToolset,
    SearchTools,
    DescribeTool,
    CallTool,
}

/// The effect of enabling or disabling a toolset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switched {
    pub selection: Selection,
    pub message: String,
    /// Exposed names of the tools that are added or removed.
    pub tools: Vec<String>,
}

impl MetaTool {
    pub const ALL: [Self; 7] = [
        Self::EnableToolset,
        Self::DisableToolset,
        Self::ListToolsets,
        Self::DescribeToolset,
        Self::SearchTools,
        Self::DescribeTool,
        Self::CallTool,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::EnableToolset => "enable_toolset",
            Self::DisableToolset => "disable_toolset",
            Self::ListToolsets => "list_toolsets",
            Self::DescribeToolset => "describe_toolset",
            Self::SearchTools => "search_tools",
            Self::DescribeTool => "describe_tool",
            Self::CallTool => "call_tool",
        }
    }

    /// The meta-tool with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Appends the definition for `tools/list`.
    pub(crate) fn render(self, text: &mut String, view: &View) {
        let ((title, _), description) = (self.about(), self.description(view));
        text.push_str("{\"name\":");
        push_string(text, self.name());
        text.push_str(",\"title\":");
        push_string(text, title);
        text.push_str(",\"description\":");
        push_string(text, &description);
        text.push_str(",\"inputSchema\":");
        text.push_str(&self.schema(view).to_string());
        text.push_str(",\"annotations\":");
        let changes = matches!(self, Self::EnableToolset | Self::DisableToolset | Self::CallTool);
        let calls = self == Self::CallTool;
        let hints = json!({
            "readOnlyHint": !changes, "destructiveHint": calls, "idempotentHint": !calls, "openWorldHint": calls,
        });
        text.push_str(&hints.to_string());
        text.push('}');
    }

    /// The definition as a descriptor, for provider renderings.
    fn descriptor(self, view: &View) -> ToolDescriptor {
        let (title, _) = self.about();
        ToolDescriptor {
            title: Some(title.into()),
            description: Some(self.description(view)),
            input_schema: JsonText::from(&self.schema(view)),
            ..ToolDescriptor::named(self.name())
        }
    }

    fn description(self, view: &View) -> String {
        let (_, description) = self.about();
        match self {
            Self::EnableToolset => format!("{description}\n{}", catalogue(view)),
            _ => description.to_owned(),
        }
    }

    fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::EnableToolset => (
                "Enable a toolset",
                "Switches a group of tools on, so that they can be called. Toolsets:",
            ),
            Self::DisableToolset => (
                "Disable a toolset",
                "Switches a group of tools off again. Tools that another enabled toolset has too stay.",
            ),
            Self::ListToolsets => {
                ("List toolsets", "Lists the groups of tools and says which are switched on.")
            }
            Self::DescribeToolset => {
                ("Describe a toolset", "Shows the tools of a group, without switching it on.")
            }
            Self::SearchTools => (
                "Search tools",
                "Finds tools by what they do, best match first, over all groups. Describe a match with describe_tool \
                 and run it with call_tool.",
            ),
            Self::DescribeTool => (
                "Describe a tool",
                "Shows the whole definition of a tool with the schema of its arguments.",
            ),
            Self::CallTool => (
                "Call a tool",
                "Runs a tool that search_tools or describe_toolset showed, whether its group is switched on or not.",
            ),
        }
    }

    fn schema(self, view: &View) -> Value {
        let text = |about: &str| json!({"type": "string", "description": about});
        let set = || {
            let mut set = text("The name of the toolset");
            if let Some(set) = set.as_object_mut().filter(|_| !view.set_names().is_empty()) {
                set.insert("enum".into(), view.set_names().into());
            }
            json!({"type": "object", "properties": {"toolsetName": set}, "required": ["toolsetName"]})
        };
        match self {
            Self::EnableToolset | Self::DisableToolset | Self::DescribeToolset => set(),
            Self::ListToolsets => json!({"type": "object", "properties": {}}),
            Self::SearchTools => json!({"type": "object", "properties": {
                "query": text("What the tool should do, in a few words"),
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_MATCHES, "description": "How many matches; 8 when left out"},
            }, "required": ["query"]}),
            Self::DescribeTool => json!({"type": "object", "properties": {
                "name": text("The name of the tool"),
            }, "required": ["name"]}),
            Self::CallTool => json!({"type": "object", "properties": {
                "name": text("The name of the tool"),
                "arguments": {"type": "object", "description": "Its arguments, as its schema wants them"},
            }, "required": ["name"]}),
        }
    }
}

/// One line per toolset, from which a model chooses.
fn catalogue(view: &View) -> String {
    let lines = view.set_names().iter().filter_map(|name| view.toolset(name)).map(|set| {
        let when = set.when_to_use.as_deref().map(|when| format!(" Use it: {when}"));
        let about = format!("{}{}", set.description, when.unwrap_or_default());
        let about: String = about.chars().take(MAX_SUMMARY_CHARS).collect();
        format!("- {}: {about}", set.name)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The argument that names a toolset. Some gateways call it `name` or `toolset`; both are accepted.
fn set_argument(arguments: &Map<String, Value>) -> Option<&str> {
    let keys = ["toolsetName", "name", "toolset"];
    let given = keys.into_iter().find_map(|key| arguments.get(key))?;
    given.as_str().map(str::trim).filter(|name| !name.is_empty())
}

impl View {
    /// The definitions of the meta-tools, which precede all other tools; empty outside of the dynamic mode.
    pub fn meta_tools(&self) -> Vec<ToolDescriptor> {
        match self.mode() {
            ExposureMode::Dynamic => MetaTool::ALL.map(|meta| meta.descriptor(self)).into(),
            ExposureMode::Legacy | ExposureMode::Static => Vec::new(),
        }
    }

    fn set_named<'a>(&'a self, arguments: &Map<String, Value>) -> Result<&'a Toolset, String> {
        let known = || match self.set_names() {
            [] => "there are none here".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        let Some(name) = set_argument(arguments) else {
            return Err(format!("say which toolset in `toolsetName`; {}", known()));
        };
        self.toolset(name).ok_or_else(|| format!("there is no toolset '{name}' here; {}", known()))
    }

    /// The effect of `enable_toolset`, or the reason for refusing it. Changes nothing itself.
    pub fn enable(&self, arguments: &Map<String, Value>) -> Result<Switched, String> {
        self.enable_set(self.set_named(arguments)?)
    }

    /// The effect of enabling this toolset, or the reason for refusing it.
    pub fn enable_set(&self, set: &Toolset) -> Result<Switched, String> {
        if self.is_on(&set.name) {
            return Err(format!("toolset '{}' is already enabled", set.name));
        }
        // A toolset that a reload removed can no longer be disabled, so it does not count towards the limit.
        let active: Vec<_> = self
            .selection()
            .switched_on()
            .filter(|name| self.index().toolset(name).is_some())
            .collect();
        if let Some(max) = self.index().max_active_toolsets()
            && self.mode() == ExposureMode::Dynamic
            && active.len() >= max
        {
            return Err(format!(
                "toolset '{}' cannot be enabled: at most {max} may be active (max_active_toolsets), and {} are: \
                 disable one first",
                set.name,
                active.join(", ")
            ));
        }
        let mut selection = Selection::clone(self.selection());
        selection.toolsets.insert(set.name.clone(), true);
        let tools: Vec<String> = self.names_of(set);
        let message = format!("Toolset '{}' is enabled; it has {} tools.", set.name, tools.len());
        Ok(Switched { selection, message, tools })
    }

    /// The effect of `disable_toolset`, or the reason for refusing it. Changes nothing itself.
    pub fn disable(&self, arguments: &Map<String, Value>) -> Result<Switched, String> {
        self.disable_set(self.set_named(arguments)?)
    }

    /// The effect of disabling this toolset, or the reason for refusing it.
    pub fn disable_set(&self, set: &Toolset) -> Result<Switched, String> {
        let mut selection = Selection::clone(self.selection());
        if !self.is_on(&set.name) {
            let active: Vec<_> = self
                .set_names()
                .iter()
                .filter(|name| self.is_on(name))
                .map(String::as_str)
                .collect();
            let active = if active.is_empty() { "none".into() } else { active.join(", ") };
            return Err(format!("toolset '{}' is not enabled; enabled: {active}", set.name));
        }
        if self.mode() == ExposureMode::Dynamic {
            selection.toolsets.remove(&set.name);
        } else {
            selection.toolsets.insert(set.name.clone(), false);
        }
        let stays = |name: &String| {
            selection.switched_on().filter_map(|other| self.toolset(other)).any(|other| {
                self.members(other).any(|entry| entry.name.as_deref() == Some(name.as_str()))
            })
        };
        let (kept, gone): (Vec<_>, Vec<_>) = self.names_of(set).into_iter().partition(stays);
        let kept = match kept.len() {
            0 => String::new(),
            many => format!(" {many} stay, because other enabled toolsets have them."),
        };
        let message =
            format!("Toolset '{}' is disabled; {} tools are gone.{kept}", set.name, gone.len());
        Ok(Switched { selection, message, tools: gone })
    }

    /// The tools that switching a toolset adds or removes. A tool that is switched off in the session is not among
    /// them.
    fn names_of(&self, set: &Toolset) -> Vec<String> {
        let switched = self.members(set).filter(|entry| !self.is_switched_off(entry));
        switched.filter_map(|entry| entry.name.as_deref().map(str::to_owned)).collect()
    }

    /// The result of `list_toolsets`, as JSON text.
    pub fn toolsets_text(&self) -> String {
        let sets = self.set_names().iter().filter_map(|name| self.toolset(name)).map(|set| {
            json!({
                "name": set.name,
                "description": set.description,
                "whenToUse": set.when_to_use,
                "active": self.is_on(&set.name),
                "tools": self.members(set).count(),
            })
        });
        json!({"toolsets": sets.collect::<Vec<_>>()}).to_string()
    }

    /// The result of `describe_toolset`, as JSON text.
    pub fn toolset_text(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let set = self.set_named(arguments)?;
        let tools = self.members(set).map(|entry| {
            let about =
                json!({"name": entry.name, "description": entry.tool.descriptor.description});
            self.marked(entry, about)
        });
        Ok(json!({
            "name": set.name,
            "description": set.description,
            "whenToUse": set.when_to_use,
            "active": self.is_on(&set.name),
            "tools": tools.collect::<Vec<_>>(),
        })
        .to_string())
    }

    /// The result of `search_tools`, as JSON text.
    pub fn search_text(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let query = arguments.get("query").and_then(Value::as_str).map(str::trim);
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            return Err("say in `query` what the tool should do".into());
        };
        let end = query.char_indices().nth(MAX_QUERY).map_or(query.len(), |(end, _)| end);
        let query = query.get(..end).unwrap_or(query);
        let limit = match arguments.get("limit") {
            None | Some(Value::Null) => DEFAULT_MATCHES,
            Some(limit) => limit
                .as_u64()
                .filter(|limit| (1..=MAX_MATCHES).contains(limit))
                .ok_or_else(|| format!("`limit` must be a whole number from 1 to {MAX_MATCHES}"))?,
        };
        let limit = usize::try_from(limit).unwrap_or_default();
        let matches = self.search(query, limit).into_iter().map(|(entry, score)| {
            let sets = self.sets_of(entry);
            let about = json!({
                "name": entry.name,
                "description": entry.tool.descriptor.description,
                "toolsets": sets,
                "enabled": self.shows(entry),
                "score": (f64::from(score) * 100.0).round() / 100.0,
            });
            self.marked(entry, about)
        });
        Ok(json!({"matches": matches.collect::<Vec<_>>()}).to_string())
    }

    /// Marks a tool that is switched off in the session, which neither `enable_toolset` nor `call_tool` overrides.
    fn marked(&self, entry: &Entry, mut about: Value) -> Value {
        if let Some(about) = about.as_object_mut().filter(|_| self.is_switched_off(entry)) {
            about.insert(SWITCHED_OFF.into(), true.into());
        }
        about
    }

    fn sets_of(&self, entry: &Entry) -> Vec<&str> {
        let has = |set: &Toolset| self.members(set).any(|member| member.name == entry.name);
        let sets = self.set_names().iter().filter(|name| self.toolset(name).is_some_and(has));
        sets.map(String::as_str).collect()
    }

    /// The result of `describe_tool`, as JSON text.
    pub fn tool_text(
        &self,
        arguments: &Map<String, Value>,
        era: ListEra,
    ) -> Result<String, String> {
        let Some(name) = arguments.get("name").and_then(Value::as_str) else {
            return Err("say which tool in `name`".into());
        };
        let entry = self.reach(name).map_err(|nearest| unknown_tool(name, &nearest))?;
        let mut text = self.definition(entry, era);
        if self.is_switched_off(entry) && text.pop() == Some('}') {
            text.extend([",\"", SWITCHED_OFF, "\":true}"]);
        }
        Ok(text)
    }

    /// The tool that `call_tool` runs, or the reason why it cannot be called.
    pub fn callable(&self, name: &str) -> Result<&Entry, String> {
        let entry = self.reach(name).map_err(|nearest| unknown_tool(name, &nearest))?;
        if self.is_switched_off(entry) {
            return Err(switched_off(entry));
        }
        Ok(entry)
    }

    /// The definition of one tool, as in `tools/list`.
    pub fn definition(&self, entry: &Entry, era: ListEra) -> String {
        let mut text = String::new();
        render_tool(
            &mut text,
            entry.name.as_deref().unwrap_or_default(),
            &entry.tool.descriptor,
            era,
        );
        text
    }

    /// The result of `enable_toolset` and `disable_toolset`. It includes definitions for clients that cannot see the
    /// tool list change.
    pub fn switched_text(&self, switched: &Switched, with_definitions: Option<ListEra>) -> String {
        let mut text = String::from("{\"success\":true,\"message\":");
        push_string(&mut text, &switched.message);
        text.push_str(",\"tools\":");
        match with_definitions {
            None => push_names(&mut text, switched.tools.iter().map(String::as_str)),
            Some(era) => {
                let entries = switched.tools.iter().filter_map(|name| self.reach(name).ok());
                let definitions: Vec<_> =
                    entries.map(|entry| self.definition(entry, era)).collect();
                text.push('[');
                text.push_str(&definitions.join(","));
                text.push(']');
            }
        }
        text.push('}');
        text
    }
}

/// Error text for a tool that is switched off in the session, with the command that switches it on.
pub fn switched_off(entry: &Entry) -> String {
    let name = entry.name.as_deref().unwrap_or_default();
    format!(
        "tool '{name}' is switched off in this session; `switchboard session enable` switches it on again"
    )
}

/// Error text for an unknown tool, with similar names.
pub fn unknown_tool(name: &str, nearest: &[&str]) -> String {
    let shown: String = name.chars().take(128).collect();
    match nearest {
        [] => format!("there is no tool '{shown}' here"),
        nearest => {
            format!("there is no tool '{shown}' here; did you mean {}?", nearest.join(" or "))
        }
    }
}

/// Error text for a tool whose toolsets are not enabled, with the way to enable one.
pub fn not_enabled(view: &View, entry: &Entry, sets: &[&str], has_session: bool) -> String {
    let name = entry.name.as_deref().unwrap_or_default();
    if view.is_switched_off(entry) || sets.is_empty() {
        return switched_off(entry);
    }
    let which = match sets {
        [one] => format!("toolset '{one}', which is not"),
        many => format!("the toolsets {}, none of which is", many.join(", ")),
    };
    let first = sets.first().copied().unwrap_or_default();
    let way_out = match (view.mode(), has_session) {
        (ExposureMode::Dynamic, true) => {
            format!(
                "call enable_toolset with {{\"toolsetName\":\"{first}\"}} first, or use call_tool"
            )
        }
        (ExposureMode::Dynamic, false) => "run it with call_tool".to_owned(),
        _ => "`switchboard session enable` switches one on".to_owned(),
    };
    format!("tool '{name}' is in {which} enabled in this session: {way_out}")
}
