//! `--argument`, `--required` and `--optional` of `tool set`.

use serde_json::{Map, Value, json};

use crate::failure::Failure;

const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "array"];

/// The arguments on the command line.
pub(crate) struct GivenDeclaration<'a> {
    pub(crate) arguments: &'a [String],
    pub(crate) required: &'a [String],
    pub(crate) optional: &'a [String],
}

impl GivenDeclaration<'_> {
    /// The `arguments` of the entry; `None` if the command line does not change them. An argument of the same name keeps what
    /// the command line cannot say, such as its `enum`.
    pub(crate) fn apply(&self, present: Option<&Value>) -> Result<Option<Value>, Failure> {
        if self.arguments.is_empty() && self.required.is_empty() && self.optional.is_empty() {
            return Ok(None);
        }
        let present = present.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut arguments: Vec<Map<String, Value>> = if self.arguments.is_empty() {
            present.iter().filter_map(Value::as_object).cloned().collect()
        } else {
            self.arguments.iter().map(|text| parse(text, present)).collect::<Result<_, _>>()?
        };
        for (index, argument) in arguments.iter().enumerate() {
            let name = &argument["name"];
            if arguments.iter().take(index).any(|other| other["name"] == *name) {
                return Err(Failure::usage(format!("--argument: two arguments are named {name}")));
            }
        }
        for (option, names, is_required) in
            [("--required", self.required, true), ("--optional", self.optional, false)]
        {
            for name in names {
                let known: Vec<_> = arguments.iter().map(|it| it["name"].to_string()).collect();
                let found = arguments.iter_mut().find(|argument| argument["name"] == *name);
                let argument = found.ok_or_else(|| {
                    let hint = format!("its arguments are {}", known.join(", "));
                    let hint =
                        if known.is_empty() { "declare it with --argument".into() } else { hint };
                    Failure::usage(format!("{option} {name}: the entry declares no such argument"))
                        .with_hint(Some(hint))
                })?;
                argument.insert("required".into(), is_required.into());
            }
        }
        Ok(Some(arguments.into_iter().map(Value::Object).collect()))
    }
}

/// Splits at the first two colons only: a description may have colons.
fn parse(text: &str, present: &[Value]) -> Result<Map<String, Value>, Failure> {
    let refuse = |why: String| {
        let hint = "write it as name:type:description, such as `city:string:The name of the city`";
        Err(Failure::usage(format!("--argument '{text}': {why}")).with_hint(Some(hint.into())))
    };
    let mut parts = text.splitn(3, ':').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let Some(kind) = parts.next() else { return refuse("it has no type".into()) };
    if name.is_empty() {
        return refuse("the name is empty".into());
    }
    if !TYPES.contains(&kind) {
        return refuse(format!("'{kind}' is not a type; use one of {}", TYPES.join(", ")));
    }
    let same = present.iter().find(|argument| argument.get("name") == Some(&json!(name)));
    let mut argument = same.and_then(Value::as_object).cloned().unwrap_or_default();
    argument.insert("name".into(), name.into());
    argument.insert("type".into(), kind.into());
    if let Some(description) = parts.next().filter(|description| !description.is_empty()) {
        argument.insert("description".into(), description.into());
    }
    Ok(argument)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn apply(
        arguments: &[&str],
        required: &[&str],
        present: &Value,
    ) -> Result<Option<Value>, String> {
        let owned =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (arguments, required) = (owned(arguments), owned(required));
        let given = GivenDeclaration { arguments: &arguments, required: &required, optional: &[] };
        given.apply(Some(present)).map_err(|failure| failure.text())
    }

    #[test]
    fn an_argument_is_split_at_its_first_two_colons() {
        let declared = apply(&["day:string:format: YYYY-MM-DD", "n:integer"], &["day"], &json!([]));
        let expected = json!([
            {"name": "day", "type": "string", "description": "format: YYYY-MM-DD", "required": true},
            {"name": "n", "type": "integer"},
        ]);
        assert_eq!(declared, Ok(Some(expected)));
    }

    #[test]
    fn what_the_command_line_does_not_say_stays() {
        let present = json!([{"name": "a", "type": "string", "enum": ["x"]}, {"name": "b", "type": "string"}]);
        assert_eq!(apply(&[], &[], &present), Ok(None));
        assert_eq!(
            apply(&["a:string:New"], &[], &present),
            Ok(Some(json!([{"name": "a", "type": "string", "enum": ["x"], "description": "New"}])))
        );
        assert_eq!(
            apply(&[], &["b"], &present),
            Ok(Some(json!([
                {"name": "a", "type": "string", "enum": ["x"]},
                {"name": "b", "type": "string", "required": true},
            ])))
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        let rows: [(&[&str], &[&str], &str); 6] = [
            (&["a:string:x", "a:number:y"], &[], "two arguments are named \"a\""),
            (&[":string:x"], &[], "the name is empty"),
            (&[""], &[], "it has no type"),
            (&["a:text:x"], &[], "'text' is not a type; use one of string, number"),
            (
                &["a:string:x"],
                &["b"],
                "--required b: the entry declares no such argument\nhint: its arguments are \"a\"",
            ),
            (&[], &["b"], "hint: declare it with --argument"),
        ];
        for (arguments, required, said) in rows {
            let text = apply(arguments, required, &json!([])).unwrap_err();
            assert!(text.contains(said), "{text}");
        }
    }
}
