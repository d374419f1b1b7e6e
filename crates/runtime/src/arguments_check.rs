//! Checks arguments without calling the tool.

use serde_json::{Map, Value};
use switchboard_model::ArgumentFault;
use switchboard_schema::kind_of;

use crate::board::Board;

impl Board {
    /// The errors for which a call of the tool with these arguments would be refused; `None` if there is no such tool.
    pub fn check_arguments(&self, tool: &str, arguments: &Value) -> Option<Vec<ArgumentFault>> {
        let snapshot = self.snapshot();
        let tool = snapshot.catalog().resolve(tool).ok()?;
        let none = Value::Object(Map::new());
        // As in a call, arguments that are absent are an empty object.
        let arguments = if arguments.is_null() { &none } else { arguments };
        let Value::Object(members) = arguments else {
            let message = format!("must be a JSON object, not {}", kind_of(arguments));
            return Some(vec![ArgumentFault { path: String::new(), message }]);
        };
        let declared = tool.arguments.as_deref().unwrap_or_default().iter();
        let hidden = declared.filter(|argument| !argument.is_shown());
        let mut faults: Vec<_> = hidden
            .filter(|argument| members.contains_key(&argument.name))
            .map(|argument| {
                let message = format!("argument `{}` is set by the configuration", argument.name);
                ArgumentFault::of(&argument.name, message)
            })
            .collect();
        let compiled = snapshot.compiled(tool)?;
        if let (true, Ok(checker)) = (tool.validates_arguments, &compiled.checker) {
            let complaints = checker.check(arguments).or_else(|complaints| {
                // As in a call, a null that the schema does not allow counts as absent.
                let mut kept = members.clone();
                kept.retain(|_, value| !value.is_null());
                let is_shorter = kept.len() < members.len();
                if is_shorter { checker.check(&Value::Object(kept)) } else { Err(complaints) }
            });
            let complaints = complaints.err().unwrap_or_default();
            faults.extend(complaints.iter().map(|complaint| ArgumentFault {
                path: complaint.path().to_owned(),
                message: complaint.to_string(),
            }));
        }
        Some(faults)
    }
}
