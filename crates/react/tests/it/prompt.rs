//! The prompt, and the bounds of templates.

use serde_json::{Value, json};
use switchboard_react::PromptTemplate;

fn tools() -> Value {
    json!([
        {
            "name": "demo__add",
            "description": "Adds two numbers.\nReturns the sum.",
            "arguments": [
                {"name": "a", "type": "number", "required": true, "description": "the first"},
                {"name": "b", "type": "number", "required": false, "description": ""},
            ],
        },
        {"name": "demo__time", "description": "", "arguments": []},
    ])
}

#[test]
fn the_built_in_prompt_lists_every_tool_with_its_arguments() {
    let prompt = PromptTemplate::built_in().unwrap().render(&tools()).unwrap();
    insta::assert_snapshot!(prompt);
}

#[test]
fn a_prompt_without_tools_asks_for_an_answer() {
    let prompt = PromptTemplate::built_in().unwrap().render(&json!([])).unwrap();
    insta::assert_snapshot!(prompt, @r"
    Reply in exactly this format. The label is at the beginning of a line.

    Final Answer: the answer for the user
    ");
}

#[test]
fn the_built_in_template_passes_its_own_check() {
    PromptTemplate::check(PromptTemplate::built_in_text()).unwrap();
}

#[test]
fn mistakes_in_a_template_are_named_with_their_line() {
    let check = |text: &str| PromptTemplate::check(text).unwrap_err().to_string();
    insta::assert_snapshot!(check("a\n{% for x in tools %}"), @"line 2: syntax error: unexpected end of input, expected end of block");
    insta::assert_snapshot!(check("a\n\n{{ question }}"), @"line 3: undefined value: `question` is undefined");
    insta::assert_snapshot!(check("{% for tool in tools %}{{ tool.nmae }}{% endfor %}"), @"line 1: undefined value: `tool.nmae` is undefined");
    insta::assert_snapshot!(check("{{ tools | shout }}"), @"line 1: unknown filter: filter shout is unknown");
    insta::assert_snapshot!(check(&"x".repeat(300 << 10)), @"the template is larger than 256 KiB");
}

#[test]
fn a_template_that_does_not_end_or_grows_too_large_is_refused() {
    let check = |text: &str| PromptTemplate::check(text).unwrap_err().to_string();
    let nested =
        "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
    let silent = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    insta::assert_snapshot!(check(silent), @"line 1: the template does not end: it was stopped after 1000000 steps");
    insta::assert_snapshot!(check(nested), @"line 1: the template does not end: it was stopped after 1000000 steps");
    insta::assert_snapshot!(check("{{ 'x' * 9999999 }}"), @"the rendered text is larger than 4 MiB");
}
