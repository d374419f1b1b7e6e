//! Tool calls of a streamed answer, put together from their fragments.
//!
//! A fragment's `index` names its call. Where servers omit it or use the same one for all calls, a new id or name begins a
//! new call.

use serde_json::{Map, Value};

use crate::splicer::ToolOwner;

/// Maximum length of arguments for which completeness is checked with every fragment.
const MAX_REPARSED_BYTES: usize = 16 << 10;

/// A call in progress.
#[derive(Debug)]
pub(super) struct CallInProgress {
    /// The server's index of the call in this round.
    index: Option<u64>,
    pub(super) id: String,
    /// `function` or `custom`.
    kind: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Members that are unknown here, such as signatures.
    more: Map<String, Value>,
    /// Known once the name is.
    pub(super) owner: Option<ToolOwner>,
    /// The index under which the app sees the call, if it does.
    pub(super) shown_as: Option<usize>,
}

/// A fragment of a call.
#[derive(Debug)]
pub(super) struct Fragment {
    index: Option<u64>,
    id: String,
    kind: String,
    name: String,
    pub(super) arguments: String,
    pub(super) more: Map<String, Value>,
}

impl Fragment {
    pub(super) fn read(fragment: Value) -> Option<Self> {
        let Value::Object(mut members) = fragment else { return None };
        let word = |value: Option<Value>| match value {
            Some(Value::String(word)) => word,
            _ => String::new(),
        };
        let index = members.shift_remove("index").and_then(|index| index.as_u64());
        let id = word(members.shift_remove("id"));
        let mut kind = word(members.shift_remove("type"));
        let (called, text) = match members.shift_remove("custom") {
            Some(custom) => {
                "custom".clone_into(&mut kind);
                (Some(custom), "input")
            }
            None => (members.shift_remove("function"), "arguments"),
        };
        let (name, arguments) = match called {
            Some(Value::Object(mut called)) => {
                let arguments = match called.shift_remove(text) {
                    // Some servers send the object itself.
                    Some(object @ Value::Object(_)) => object.to_string(),
                    other => word(other),
                };
                (word(called.shift_remove("name")), arguments)
            }
            _ => (String::new(), String::new()),
        };
        Some(Self { index, id, kind, name, arguments, more: members })
    }
}

impl CallInProgress {
    fn begin(fragment: &Fragment) -> Self {
        Self {
            index: fragment.index,
            id: String::new(),
            kind: if fragment.kind == "custom" { "custom" } else { "function" }.to_owned(),
            name: String::new(),
            arguments: String::new(),
            more: Map::new(),
            owner: None,
            shown_as: None,
        }
    }

    /// Adds a fragment.
    fn take(&mut self, fragment: &Fragment) {
        if self.id.is_empty() {
            self.id.clone_from(&fragment.id);
        }
        if self.name.is_empty() {
            self.name.clone_from(&fragment.name);
        }
        self.arguments.push_str(&fragment.arguments);
        self.more.extend(fragment.more.clone());
    }

    /// Whether the arguments are a whole object.
    pub(super) fn is_whole(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    /// Like [`Self::is_whole`], but `false` for long arguments, so that they are not parsed with every fragment.
    fn seems_whole(&self) -> bool {
        self.arguments.len() <= MAX_REPARSED_BYTES && self.is_whole()
    }

    /// The first fragment that the app gets of the call, with the arguments so far.
    pub(super) fn first_fragment(&self, index: usize) -> Value {
        let mut fragment = self.to_json(&self.arguments);
        fragment.shift_insert(0, "index".to_owned(), index.into());
        Value::Object(fragment)
    }

    /// A later fragment.
    pub(super) fn next_fragment(&self, index: usize, fragment: &Fragment) -> Value {
        let mut members = fragment.more.clone();
        members.shift_insert(0, "index".to_owned(), index.into());
        let mut called = Map::new();
        called.insert(self.text_member().to_owned(), fragment.arguments.clone().into());
        members.insert(self.kind.clone(), called.into());
        Value::Object(members)
    }

    /// The call in a message.
    pub(super) fn to_json(&self, arguments: &str) -> Map<String, Value> {
        let mut call = Map::new();
        call.insert("id".to_owned(), self.id.clone().into());
        call.insert("type".to_owned(), self.kind.clone().into());
        let mut called = Map::new();
        called.insert("name".to_owned(), self.name.clone().into());
        called.insert(self.text_member().to_owned(), arguments.into());
        call.insert(self.kind.clone(), called.into());
        call.extend(self.more.clone());
        call
    }

    pub(super) fn is_custom(&self) -> bool {
        self.kind == "custom"
    }

    fn text_member(&self) -> &'static str {
        if self.is_custom() { "input" } else { "arguments" }
    }
}

/// Adds a fragment to its call, or begins a new one, and returns its position.
pub(super) fn add(calls: &mut Vec<CallInProgress>, fragment: &Fragment) -> usize {
    let at = place(calls, fragment).unwrap_or_else(|| {
        calls.push(CallInProgress::begin(fragment));
        calls.len() - 1
    });
    if let Some(call) = calls.get_mut(at) {
        call.take(fragment);
    }
    at
}

/// The position of the call that a fragment continues; `None` if the fragment begins a new call.
fn place(calls: &[CallInProgress], fragment: &Fragment) -> Option<usize> {
    let at = match fragment.index {
        Some(_) => calls.iter().rposition(|call| call.index == fragment.index)?,
        None => calls.len().checked_sub(1)?,
    };
    let call = calls.get(at)?;
    let is_new_id = !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id;
    let is_new_name =
        !fragment.name.is_empty() && !call.name.is_empty() && fragment.name != call.name;
    let seems_new = is_new_name || !fragment.name.is_empty() && call.seems_whole();
    let is_new = match fragment.index {
        // Some servers repeat the name, some create an id for every fragment, and some use one index for all calls.
        Some(_) => is_new_id && seems_new,
        None if fragment.id.is_empty() || call.id.is_empty() => seems_new,
        None => is_new_id,
    };
    (!is_new).then_some(at)
}
