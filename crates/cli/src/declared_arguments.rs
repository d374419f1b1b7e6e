//! The options of `tool set` about the arguments of a tool.

use serde_json::{Map, Value, json};
use switchboard_config::is_fixed_or_hidden;

use crate::failure::Failure;

const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "array"];

type Argument = Map<String, Value>;

/// What the command line says about arguments. The last five options are written as `argument=value`.
///
/// Fixed and hidden arguments are often a tenant, a credential or a safety switch, and without its entry the argument is the
/// model's to set. So they stay unless `removed` names them.
#[derive(Debug, Default)]
pub(crate) struct GivenDeclaration<'a> {
    pub(crate) arguments: &'a [String],
    pub(crate) removed: &'a [String],
    pub(crate) required: &'a [String],
    pub(crate) optional: &'a [String],
    pub(crate) hidden: &'a [String],
    pub(crate) choices: &'a [String],
    pub(crate) defaults: &'a [String],
    pub(crate) items: &'a [String],
    pub(crate) properties: &'a [String],
    pub(crate) values: &'a [String],
}

/// The `arguments` that an entry gets.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NewArguments {
    /// `None` if the command line does not change them, `null` if there are none any more.
    pub(crate) value: Option<Value>,
    /// Fixed and hidden arguments that stay, although `--argument` does not name them.
    pub(crate) kept: Vec<String>,
}

impl GivenDeclaration<'_> {
    /// The `arguments` of the entry. An argument of the same name keeps what the command line does not say, such as its
    /// `enum`.
    pub(crate) fn apply(&self, present: Option<&Value>) -> Result<NewArguments, Failure> {
        if self.says_nothing() && self.removed.is_empty() {
            return Ok(NewArguments::default());
        }
        let (mut arguments, kept) = self.named(&self.remaining(present)?)?;
        for (index, argument) in arguments.iter().enumerate() {
            let name = name_of(argument);
            if arguments.iter().take(index).any(|other| name_of(other) == name) {
                return Err(Failure::usage(format!("--argument: two arguments are named {name}")));
            }
        }
        for (option, names, key, value) in [
            ("--required", self.required, "required", true),
            ("--optional", self.optional, "required", false),
            ("--hidden", self.hidden, "hidden", true),
        ] {
            for name in names {
                find(&mut arguments, option, name)?.insert(key.into(), value.into());
            }
        }
        for text in self.defaults {
            let (argument, text) = addressed(&mut arguments, "--default", text)?;
            let value = typed("--default", argument, text)?;
            argument.insert("default".into(), value);
        }
        for text in self.values {
            let (argument, text) = addressed(&mut arguments, "--value", text)?;
            let value = typed("--value", argument, text)?;
            argument.insert("value".into(), value);
        }
        for (option, key, texts) in
            [("--items", "items", self.items), ("--properties", "properties", self.properties)]
        {
            for text in texts {
                let (argument, text) = addressed(&mut arguments, option, text)?;
                argument.insert(key.into(), object(option, text)?);
            }
        }
        self.choose(&mut arguments)?;
        let value = if arguments.is_empty() {
            Value::Null
        } else {
            arguments.into_iter().map(Value::Object).collect()
        };
        Ok(NewArguments { value: Some(value), kept })
    }

    /// The arguments of the entry before the other options change them, and the names of those that `--argument` does not
    /// name and that stay all the same.
    fn named(&self, present: &[Value]) -> Result<(Vec<Argument>, Vec<String>), Failure> {
        let object = |argument: &Value| argument.as_object().cloned();
        if self.arguments.is_empty() {
            return Ok((present.iter().filter_map(object).collect(), Vec::new()));
        }
        let given = self.arguments.iter().map(|text| parse(text, present));
        let mut given: Vec<Argument> = given.collect::<Result<_, _>>()?;
        let mut kept = Vec::new();
        for argument in present.iter().filter(|argument| is_fixed_or_hidden(argument)) {
            let name = &argument["name"];
            if given.iter().all(|given| name_of(given) != name) {
                kept.extend(name.as_str().map(str::to_owned));
                given.extend(object(argument));
            }
        }
        Ok((given, kept))
    }

    /// The present arguments without those that are removed.
    fn remaining(&self, present: Option<&Value>) -> Result<Vec<Value>, Failure> {
        let mut present = present.and_then(Value::as_array).cloned().unwrap_or_default();
        for name in self.removed {
            let Some(at) = present.iter().position(|argument| argument["name"] == **name) else {
                return Err(unknown(
                    "--remove-argument",
                    name,
                    present.iter().map(|it| &it["name"]),
                ));
            };
            present.remove(at);
        }
        Ok(present)
    }

    /// Whether no option but `--remove-argument` is given.
    pub(crate) fn says_nothing(&self) -> bool {
        let lists = [
            self.arguments,
            self.required,
            self.optional,
            self.hidden,
            self.choices,
            self.defaults,
            self.items,
            self.properties,
            self.values,
        ];
        lists.iter().all(|list| list.is_empty())
    }

    /// Replaces the accepted values of each argument that `--enum` names.
    fn choose(&self, arguments: &mut [Argument]) -> Result<(), Failure> {
        let mut begun: Vec<Value> = Vec::new();
        for text in self.choices {
            let (argument, text) = addressed(arguments, "--enum", text)?;
            let value = typed("--enum", argument, text)?;
            let is_begun = begun.contains(name_of(argument));
            match argument.get_mut("enum").and_then(Value::as_array_mut) {
                Some(choices) if is_begun => choices.push(value),
                Some(_) | None => {
                    begun.push(name_of(argument).clone());
                    argument.insert("enum".into(), json!([value]));
                }
            }
        }
        Ok(())
    }
}

/// The argument that an option names.
fn find<'a>(
    arguments: &'a mut [Argument],
    option: &str,
    name: &str,
) -> Result<&'a mut Argument, Failure> {
    match arguments.iter().position(|argument| name_of(argument) == name) {
        Some(at) => Ok(&mut arguments[at]),
        None => Err(unknown(option, name, arguments.iter().map(name_of))),
    }
}

/// The name of an argument as it is written; `null` if it has none.
fn name_of(argument: &Argument) -> &Value {
    argument.get("name").unwrap_or(&Value::Null)
}

fn unknown<'a>(option: &str, name: &str, known: impl Iterator<Item = &'a Value>) -> Failure {
    let known: Vec<_> = known.map(Value::to_string).collect();
    let hint = match (known.is_empty(), option) {
        (true, "--remove-argument") => "it declares none".into(),
        (true, _) => "declare it with --argument".into(),
        (false, "--remove-argument") => format!("its arguments are {}", known.join(", ")),
        (false, _) => format!(
            "its arguments are {}; declare another one beside them with --argument {name}:TYPE",
            known.join(", ")
        ),
    };
    Failure::usage(format!("{option} {name}: the entry declares no such argument"))
        .with_hint(Some(hint))
}

/// Splits `argument=value`, at the first `=` only.
fn addressed<'a, 't>(
    arguments: &'a mut [Argument],
    option: &str,
    text: &'t str,
) -> Result<(&'a mut Argument, &'t str), Failure> {
    let Some((name, value)) = text.split_once('=') else {
        let hint = format!("write it as {option} argument=value");
        return Err(
            Failure::usage(format!("{option} '{text}': there is no `=`")).with_hint(Some(hint))
        );
    };
    Ok((find(arguments, option, name.trim())?, value))
}

/// A value of the argument's type. Without a type, a text that is no JSON is a string.
fn typed(option: &str, argument: &Argument, text: &str) -> Result<Value, Failure> {
    match argument.get("type").and_then(Value::as_str) {
        Some("string") => Ok(text.into()),
        // A reference is replaced when the file is loaded.
        Some(_) if text.contains("${") => Ok(text.into()),
        Some(kind) => serde_json::from_str(text.trim()).map_err(|_| {
            let name = name_of(argument);
            Failure::usage(format!("{option} {name}: '{text}' is no JSON value of the type {kind}"))
        }),
        None => Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
    }
}

fn object(option: &str, text: &str) -> Result<Value, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) | Err(_) => Err(Failure::usage(format!("{option}: '{text}' is no JSON object"))),
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

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn apply(
        arguments: &[&str],
        required: &[&str],
        present: &Value,
    ) -> Result<Option<Value>, String> {
        let (arguments, required) = (owned(arguments), owned(required));
        let given = GivenDeclaration {
            arguments: &arguments,
            required: &required,
            ..GivenDeclaration::default()
        };
        given.apply(Some(present)).map(|new| new.value).map_err(|failure| failure.text())
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

    /// What becomes of the arguments of an entry with two that callers do not give, and which stay unnamed.
    fn changed(arguments: &[&str], removed: &[&str]) -> Result<NewArguments, String> {
        let present = json!([
            {"name": "text", "type": "string"},
            {"name": "tenant", "value": "${TENANT}"},
            {"name": "debug", "hidden": true},
        ]);
        let (arguments, removed) = (owned(arguments), owned(removed));
        let given = GivenDeclaration {
            arguments: &arguments,
            removed: &removed,
            ..GivenDeclaration::default()
        };
        given.apply(Some(&present)).map_err(|failure| failure.text())
    }

    #[test]
    fn fixed_and_hidden_arguments_stay_until_they_are_removed_by_name() {
        let check = |arguments: &[&str], removed: &[&str], value: Value, kept: &[&str]| {
            let expected = NewArguments { value: Some(value), kept: owned(kept) };
            assert_eq!(changed(arguments, removed), Ok(expected));
        };
        let (tenant, debug) = (
            json!({"name": "tenant", "value": "${TENANT}"}),
            json!({"name": "debug", "hidden": true}),
        );
        let new = json!({"name": "new", "type": "string"});
        check(&["new:string"], &[], json!([new, tenant, debug]), &["tenant", "debug"]);
        let named = json!({"name": "debug", "hidden": true, "type": "boolean"});
        check(&["debug:boolean"], &[], json!([named, tenant]), &["tenant"]);
        check(&["new:string"], &["tenant"], json!([new, debug]), &["debug"]);
        check(&[], &["tenant", "text"], json!([debug]), &[]);
        check(&[], &["tenant", "text", "debug"], Value::Null, &[]);
        // Removed and declared again, it is the caller's to give.
        let free = json!({"name": "tenant", "type": "string"});
        check(&["tenant:string"], &["tenant"], json!([free, debug]), &["debug"]);
        let text = changed(&["new:string"], &["tenat"]).unwrap_err();
        let said = "--remove-argument tenat: the entry declares no such argument\nhint: its arguments are \"text\", \"tenant\", \"debug\"";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn an_argument_without_a_name_is_left_to_the_check_of_the_file() {
        let present = json!([{"type": "string"}, "x"]);
        let text = apply(&[], &["a"], &present).unwrap_err();
        assert!(text.contains("--required a: the entry declares no such argument"), "{text}");
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
                "--required b: the entry declares no such argument\nhint: its arguments are \"a\"; declare another one beside them with --argument b:TYPE",
            ),
            (&[], &["b"], "hint: declare it with --argument"),
        ];
        for (arguments, required, said) in rows {
            let text = apply(arguments, required, &json!([])).unwrap_err();
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn every_field_of_an_argument_can_be_given() {
        let arguments = owned(&["unit:string:Unit", "n:integer", "to:array", "where:object"]);
        let choices = owned(&["unit=celsius", "n=1", "unit=a=b", "n=2"]);
        let (defaults, items) =
            (owned(&["unit=celsius", "n= 2 "]), owned(&[r#"to={"type": "string"}"#]));
        let (properties, hidden) = (owned(&[r#"where={"zip": {}}"#]), owned(&["n"]));
        let values = owned(&["to=[\"me\"]", "where=${PLACE}"]);
        let given = GivenDeclaration {
            arguments: &arguments,
            choices: &choices,
            defaults: &defaults,
            items: &items,
            properties: &properties,
            hidden: &hidden,
            values: &values,
            ..GivenDeclaration::default()
        };
        let present = json!([{"name": "unit", "enum": ["old"]}]);
        assert_eq!(
            given.apply(Some(&present)).map(|new| new.value).map_err(|failure| failure.text()),
            Ok(Some(json!([
                {"name": "unit", "enum": ["celsius", "a=b"], "type": "string", "description": "Unit", "default": "celsius"},
                {"name": "n", "type": "integer", "hidden": true, "default": 2, "enum": [1, 2]},
                {"name": "to", "type": "array", "value": ["me"], "items": {"type": "string"}},
                {"name": "where", "type": "object", "value": "${PLACE}", "properties": {"zip": {}}},
            ])))
        );
    }

    #[test]
    fn a_value_that_does_not_fit_its_option_is_named() {
        let arguments = owned(&["n:integer:How many"]);
        let base = || GivenDeclaration { arguments: &arguments, ..GivenDeclaration::default() };
        let check = |given: &GivenDeclaration<'_>, said: &str| {
            let text = given.apply(None).unwrap_err().text();
            assert!(text.contains(said), "{text}");
        };
        check(
            &GivenDeclaration { defaults: &owned(&["n=many"]), ..base() },
            "--default \"n\": 'many' is no JSON value of the type integer",
        );
        check(
            &GivenDeclaration { defaults: &owned(&["n"]), ..base() },
            "there is no `=`\nhint: write it as --default argument=value",
        );
        check(
            &GivenDeclaration { choices: &owned(&["m=1"]), ..base() },
            "--enum m: the entry declares no such argument",
        );
        check(
            &GivenDeclaration { items: &owned(&["n=[]"]), ..base() },
            "--items: '[]' is no JSON object",
        );
        check(
            &GivenDeclaration { properties: &owned(&["n={"]), ..base() },
            "--properties: '{' is no JSON object",
        );
    }
}
