//! What is read from the replies of models: good, sloppy and hostile ones.

use pretty_assertions::assert_eq;
use serde_json::Value;
use switchboard_react::{ReactParser, ReactPiece, ReactProblem};

/// One row: a reply, and what is read from it in a short notation. `think`, `thought`, `call`, `bad`, `answer`, and the
/// problem or `dropped` at the end.
pub(crate) const REPLIES: &[(&str, &[&str])] = &[
    // As the prompt asks for it.
    (
        "Thought: I add.\nAction: add\nArgs: {\"a\": 1, \"b\": 2}",
        &["thought I add.", r#"call add {"a":1,"b":2}"#],
    ),
    ("Thought: I know.\nFinal Answer: 42", &["thought I know.", "answer 42"]),
    ("Action: add\nArgs: {}", &["call add {}"]),
    ("Final Answer: 42", &["answer 42"]),
    ("Thought: a\nb\n\nc\nFinal Answer: x", &["thought a\nb\n\nc", "answer x"]),
    ("Thought: a\n\nAction: add\n\nArgs: {}\n", &["thought a", "call add {}"]),
    ("Final Answer: one\n\ntwo\n  - three", &["answer one\n\ntwo\n  - three"]),
    ("Final Answer: {\"a\": 1}", &["answer {\"a\": 1}"]),
    ("Final Answer:\n42\n", &["answer 42"]),
    // Labels as models write them.
    ("thought: a\naction: add\nargs: {}", &["thought a", "call add {}"]),
    ("THOUGHT: a\nACTION: add\nARGS: {}", &["thought a", "call add {}"]),
    ("Thought 1: a\nAction 1: add\nArgs 1: {}", &["thought a", "call add {}"]),
    (
        "**Thought:** a\n**Action:** add\n**Args:** {\"a\": 1}",
        &["thought a", r#"call add {"a":1}"#],
    ),
    ("**Thought**: a\n**Action**: add\n**Args**: {}", &["thought a", "call add {}"]),
    ("*Thought*: a\n`Action`: `add`\n`Args`: `{}`", &["thought a", "call add {}"]),
    (
        "### Thought\na\n### Action\nadd\n### Args\n{\"a\": 1}",
        &["thought a", r#"call add {"a":1}"#],
    ),
    ("> Thought: a\n> Action: add\n> Args: {}", &["thought a", "call add {}"]),
    ("- Thought: a\n- Action: add\n- Args: {}", &["thought a", "call add {}"]),
    ("1. Thought: a\n2. Action: add\n3. Args: {}", &["thought a", "call add {}"]),
    ("  Thought : a\n  Action : add\n  Args : {}", &["thought a", "call add {}"]),
    ("\"Thought:\" a\n\"Final Answer:\" b", &["thought a", "answer b"]),
    ("Thought：a\nFinal Answer：b", &["thought a", "answer b"]),
    ("Thought: a\nAction: add\nAction Input: {\"a\": 1}", &["thought a", r#"call add {"a":1}"#]),
    ("Action: add\nAction_Input: {}", &["call add {}"]),
    ("Action: add\nArguments: {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Thought: a\nAnswer: b", &["thought a", "answer b"]),
    ("**Final Answer**\n\n42", &["answer 42"]),
    ("**Final Answer: 42**", &["answer 42"]),
    ("**Final Answer:** **42** it is", &["answer **42** it is"]),
    ("FINAL_ANSWER: 42", &["answer 42"]),
    // Line ends.
    (
        "Thought: a\r\nAction: add\r\nArgs: {\r\n\"a\": 1}\r\n",
        &["thought a", r#"call add {"a":1}"#],
    ),
    ("Thought: a\rFinal Answer: b\r", &["thought a", "answer b"]),
    ("\n\n\nThought: a\nFinal Answer: b\n\n\n", &["thought a", "answer b"]),
    // Code fences.
    ("```\nThought: a\nAction: add\nArgs: {\"a\": 1}\n```", &["thought a", r#"call add {"a":1}"#]),
    ("```\nThought: a\nFinal Answer: b\n```", &["thought a", "answer b"]),
    ("Action: add\nArgs:\n```json\n{\n  \"a\": 1\n}\n```", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: ```json\n{\"a\": 1}\n```", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: ```{\"a\": 1}```", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: json {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Thought: a\n```\nAction: add\nArgs: {}\n```", &["thought a", "call add {}"]),
    (
        "Thought: see\n```py\nx\n```\nmore\nFinal Answer: b",
        &["thought see\n```py\nx\n```\nmore", "answer b"],
    ),
    ("Final Answer: use\n```sh\nls\n```", &["answer use\n```sh\nls\n```"]),
    (
        "Final Answer: so:\n```\nAction: x\nArgs: {}\n```\ndone",
        &["answer so:\n```\nAction: x\nArgs: {}\n```\ndone"],
    ),
    // Other words for the arguments, after an action only.
    ("Action: add\nParameters: {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Action: add\n**Input:** {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Action: add\nTool Input:\n{\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Input: 3 apples\nOutput: 4", &["answer Input: 3 apples\nOutput: 4"]),
    (
        "Thought: a\nParameters: b\nAction: add\nArgs: {}",
        &["thought a\nParameters: b", "call add {}"],
    ),
    // Actions as models with native tool calls write them into their text.
    (
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        &[r#"call add {"a":1}"#],
    ),
    (
        "I add.\n<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>\n<tool_call>\n{\"name\": \"sub\"}\n</tool_call>",
        &["thought I add.", "call add {}", "call sub {}"],
    ),
    ("Thought: a\n<tool_call>\n", &["thought a", "NoName"]),
    (
        "Final Answer: so:\n<tool_call>{\"name\": \"add\"}</tool_call>",
        &["answer so:\n<tool_call>{\"name\": \"add\"}</tool_call>"],
    ),
    (
        "Action: say\nArgs: {\"text\": \"\n<tool_call>\n\"}",
        &[r#"call say {"text":"\n<tool_call>\n"}"#],
    ),
    ("<tool_calls> is a tag", &["answer <tool_calls> is a tag"]),
    ("```json\n{\"action\": \"add\", \"action_input\": {\"a\": 1}}\n```", &[r#"call add {"a":1}"#]),
    ("{\"name\": \"add\", \"parameters\": {\"a\": 1}}", &[r#"call add {"a":1}"#]),
    ("{\"action\": \"Final Answer\", \"action_input\": \"42\"}", &["answer 42"]),
    ("{\"name\": \"Ada L.\", \"input\": {}}", &["answer {\"name\": \"Ada L.\", \"input\": {}}"]),
    ("{\"name\": \"add\", \"input\": 7}", &["answer {\"name\": \"add\", \"input\": 7}"]),
    (
        "{\"name\": \"add\", \"input\": {}, \"age\": 7}",
        &["answer {\"name\": \"add\", \"input\": {}, \"age\": 7}"],
    ),
    (
        "Here it is:\n{\"name\": \"add\", \"input\": {}}",
        &["answer Here it is:\n{\"name\": \"add\", \"input\": {}}"],
    ),
    // Names.
    ("Action: \"add\"\nArgs: {}", &["call add {}"]),
    ("Action: 'add'\nArgs: {}", &["call add {}"]),
    ("Action: `files__read`\nArgs: {}", &["call files__read {}"]),
    ("Action: **add**\nArgs: {}", &["call add {}"]),
    ("Action: [add]\nArgs: {}", &["call add {}"]),
    ("Action: <add>\nArgs: {}", &["call add {}"]),
    ("Action: add.\nArgs: {}", &["call add {}"]),
    ("Action: server.tool\nArgs: {}", &["call server.tool {}"]),
    ("Action:\nadd\nArgs: {}", &["call add {}"]),
    ("Action: ```add```\nArgs: {}", &["call add {}"]),
    ("Action:\n```\nadd\n```\nArgs: {\"a\":1}", &[r#"call add {"a":1}"#]),
    ("Action: I will use add\nArgs: {}", &["call I will use add {}"]),
    // Arguments in other places and forms.
    ("Action: add Args: {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Action: add, Action Input: {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Action: add {\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Action: add({\"a\": 1})", &[r#"call add {"a":1}"#]),
    ("Action: add\n{\"a\": 1}", &[r#"call add {"a":1}"#]),
    ("Action: add", &["call add {}"]),
    ("Action: add\nArgs:", &["call add {}"]),
    ("Action: add\nArgs: None\n", &["call add {}"]),
    ("Action: add\nArgs: N/A", &["call add {}"]),
    ("Action: add()", &["call add {}"]),
    ("Action: Search[rust]", &["bad Search rust]"]),
    ("Action: add(a=1)", &["bad add a=1)"]),
    ("Action: add\nArgs: \"{\\\"a\\\": 1}\"", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: '{\"a\": 1}'", &[r#"call add {"a":1}"#]),
    (
        "Action:\n```json\n{\"action\": \"add\", \"action_input\": {\"a\": 1}}\n```",
        &[r#"call add {"a":1}"#],
    ),
    ("Action: {\"name\": \"add\", \"arguments\": {\"a\": 1}}", &[r#"call add {"a":1}"#]),
    ("Action: {\"action\": \"Final Answer\", \"action_input\": \"42\"}", &["answer 42"]),
    ("Action: Final Answer\nAction Input: 42", &["answer 42"]),
    ("Thought: a\nAction: None\nFinal Answer: b", &["thought a", "answer b"]),
    // JSON.
    (
        "Action: add\nArgs: {\n  \"a\": {\"b\": [1, {\"c\": null}]},\n  \"d\": \"}\"\n}",
        &[r#"call add {"a":{"b":[1,{"c":null}]},"d":"}"}"#],
    ),
    (
        r#"Action: say
Args: {"text": "He said \"{\" and \\"}"#,
        &[r#"call say {"text":"He said \"{\" and \\"}"#],
    ),
    ("Action: say\nArgs: {\"text\": \"a\nb\"}", &[r#"call say {"text":"a\nb"}"#]),
    (
        "Action: say\nArgs: {\"text\": \"a\n```py\nx\n```\"}",
        &[r#"call say {"text":"a\n```py\nx\n```"}"#],
    ),
    (
        "Action: say\nArgs: {\"Action:\": \"x\",\n\"Thought:\": 1}",
        &[r#"call say {"Action:":"x","Thought:":1}"#],
    ),
    ("Action: add\nArgs: {\"a\": 1}\n\nNow I wait for the result.", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: {\"a\": 1} // one", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: {\"ü\": \"日本\"}", &[r#"call add {"ü":"日本"}"#]),
    ("Action: add\nArgs: {\"a\": 1,}", &[r#"call add {"a":1}"#]),
    ("Action: add\nArgs: {\n\"a\": [1, 2,],\n}\n", &[r#"call add {"a":[1,2]}"#]),
    // Arguments that cannot be read.
    ("Action: add\nArgs: {'a': 1}", &["bad add {'a': 1}"]),
    ("Action: add\nArgs: {\"a\": 1", &["bad add {\"a\": 1\n"]),
    ("Action: add\nArgs: [1, 2]", &["bad add [1, 2]"]),
    ("Action: add\nArgs: Paris", &["bad add Paris"]),
    ("Action: add\nArgs: 7", &["bad add 7"]),
    ("Action: add\nArgs: {\"a\": 1,,}", &["bad add {\"a\": 1,,}"]),
    ("Action: add\nArgs: {\"a\": \"x\nObservation: 3", &["bad add {\"a\": \"x\n", "dropped"]),
    ("Action: add\nArgs: a={\"x\":1}", &["bad add a={\"x\":1}"]),
    // Several actions.
    (
        "Thought: a\nAction: x\nArgs: {}\nThought: b\nAction: y\nArgs: {\"n\": 1}",
        &["thought a", "call x {}", "thought b", r#"call y {"n":1}"#],
    ),
    ("Action: x\nAction: y\nArgs: {}", &["call x {}", "call y {}"]),
    ("Action: x\nArgs: {}\nArgs: {\"a\": 1}", &["call x {}"]),
    // Labels within the line of a thought.
    (
        "Thought: I should look. Action: find Args: {\"n\": 1}",
        &["thought I should look.", r#"call find {"n":1}"#],
    ),
    (
        "Thought: I look! **Action:** `find` **Args:** {\"n\": 1}",
        &["thought I look!", r#"call find {"n":1}"#],
    ),
    ("Thought: Action: find Args: {}", &["call find {}"]),
    (
        "Thought: I look. Action: find\nArgs: {\"n\": 1}",
        &["thought I look.", r#"call find {"n":1}"#],
    ),
    (
        "Thought: I look. Action: find, Action Input: {\n\"n\": 1\n}\nObservation: 3",
        &["thought I look.", r#"call find {"n":1}"#, "dropped"],
    ),
    (
        "Thought: a. Action: x Args: {}\nThought: b. Action: y Args: {\"n\": 1}",
        &["thought a.", "call x {}", "thought b.", r#"call y {"n":1}"#],
    ),
    ("Thought: I look. Action: find Args: {'n': 1}", &["thought I look.", "bad find {'n': 1}"]),
    ("Thought: I know it. Final Answer: 42", &["thought I know it.", "answer 42"]),
    ("Thought: (Done.) **Final Answer:** a\nb", &["thought (Done.)", "answer a\nb"]),
    ("```\nThought: I know. Final Answer: b\n```", &["thought I know.", "answer b"]),
    (
        "Thought: So. Final Answer: use\n```sh\nls\n```",
        &["thought So.", "answer use\n```sh\nls\n```"],
    ),
    ("Thought: I look. Action: find", &["thought I look.", "call find {}"]),
    ("Thought: I look. **Action:** `find`\n\n", &["thought I look.", "call find {}"]),
    ("Thought: Done. Action: None", &["thought Done.", "NoAction"]),
    (
        "Action: x\nArgs: {}\nThought: Next. Action: find",
        &["call x {}", "thought Next. Action: find"],
    ),
    // Labels that a thought only mentions.
    (
        "Thought: I could use Action: delete Args: {} but no.\nFinal Answer: no",
        &["thought I could use Action: delete Args: {} but no.", "answer no"],
    ),
    (
        "Thought: Look. Action: delete everything.\nFinal Answer: no",
        &["thought Look. Action: delete everything.", "answer no"],
    ),
    (
        "Thought: It is so. `Action: x Args: {}` is the format.\nFinal Answer: a",
        &["thought It is so. `Action: x Args: {}` is the format.", "answer a"],
    ),
    (
        "Thought: I look. Action: find\nThen I answer.\nFinal Answer: a",
        &["thought I look. Action: find\nThen I answer.", "answer a"],
    ),
    (
        "Thought: First I add. Final Answer: comes later.\nAction: add\nArgs: {}",
        &["thought First I add. Final Answer: comes later.", "call add {}"],
    ),
    (
        "Thought: Hm. Final Answer: 3\nThought: No.\nFinal Answer: 4",
        &["thought Hm. Final Answer: 3", "thought No.", "answer 4"],
    ),
    ("Thought: The Final Answer: 42", &["thought The Final Answer: 42", "NoAction"]),
    ("Thought: Done. Final Answer:", &["thought Done. Final Answer:", "NoAction"]),
    (
        "Thought: I look. Action: find Args: all",
        &["thought I look. Action: find Args: all", "NoAction"],
    ),
    ("I look. Action: find Args: {}", &["answer I look. Action: find Args: {}"]),
    ("Final Answer: Say so. Action: find Args: {}", &["answer Say so. Action: find Args: {}"]),
    // What the model invents after an action.
    ("Action: x\nArgs: {}\nThought: So. Final Answer: 3", &["call x {}", "thought So.", "dropped"]),
    (
        "Action: x\nArgs: {}\nObservation: 3\nThought: so\nFinal Answer: 3",
        &["call x {}", "dropped"],
    ),
    ("Action: x\nArgs: {}\nObservation: 3\nAction: delete\nArgs: {}", &["call x {}", "dropped"]),
    ("Action: x\nArgs: {}\nFinal Answer: 3", &["call x {}", "dropped"]),
    ("Action: x\nArgs: {\n}\nFinal Answer: 3", &["call x {}", "dropped"]),
    ("Action: x\nFinal Answer: 3", &["call x {}", "dropped"]),
    (
        "Thought: a\nObservation: it is 3\nFinal Answer: 3",
        &["thought a", "thought it is 3", "answer 3"],
    ),
    // After an answer everything is answer.
    ("Final Answer: a\nAction: x\nArgs: {}", &["answer a\nAction: x\nArgs: {}"]),
    ("Final Answer: a\nThought: b", &["answer a\nThought: b"]),
    // Without labels.
    ("Hello!", &["answer Hello!"]),
    ("The Action: none.\nBye", &["answer The Action: none.\nBye"]),
    ("{\"a\": 1}", &["answer {\"a\": 1}"]),
    ("{\n  \"action\": \"add\"\n}", &["answer {\n  \"action\": \"add\"\n}"]),
    ("```\nx\n```", &["answer ```\nx\n```"]),
    ("Note:\nObservation: the sky is blue.", &["answer Note:\nObservation: the sky is blue."]),
    ("I will add.\nAction: add\nArgs: {}", &["thought I will add.", "call add {}"]),
    ("Sure!\n\nFinal Answer: 4", &["thought Sure!", "answer 4"]),
    ("", &[]),
    (" \n\t\n", &[]),
    // Reasoning models.
    (
        "<think>\nhm\n</think>\n\nThought: a\nFinal Answer: b",
        &["think \nhm\n", "thought a", "answer b"],
    ),
    ("<think>Action: x</think>Final Answer: b", &["think Action: x", "answer b"]),
    ("<thinking>hm</thinking>hello", &["think hm", "answer hello"]),
    ("hm, I add\n</think>\nAction: add\nArgs: {}", &["think hm, I add\n", "call add {}"]),
    ("<think>never ends", &["think never ends"]),
    ("<think>a < b </thin </think>\nFinal Answer: b", &["think a < b </thin ", "answer b"]),
    ("Final Answer: a\n<think>b</think>", &["answer a\n<think>b</think>"]),
    // Nothing to do.
    ("Thought: I do not know what to do", &["thought I do not know what to do", "NoAction"]),
    ("Thought: a Action: add Args: {}", &["thought a Action: add Args: {}", "NoAction"]),
    ("Thought: a\nAction:\nArgs: {}", &["thought a", "NoName"]),
    ("Action: ", &["NoName"]),
    ("Action: {\"a\": 1}", &["NoName"]),
    ("Action: {\"action\": \"add\"", &["NoName"]),
    ("Args: {\"a\": 1}", &["ArgsWithoutAction"]),
    ("Thought: a\nArgs: {\"a\": 1}", &["thought a", "ArgsWithoutAction"]),
    ("Thought: a\nFinal Answer:", &["thought a", "EmptyAnswer"]),
    ("Thought: a\nAction: None", &["thought a", "NoAction"]),
    ("Thought:\nAction: add", &["call add {}"]),
];

/// The pieces of a reply in the notation of [`REPLIES`].
pub(crate) fn shown(pieces: &[ReactPiece], end: switchboard_react::ReactEnd) -> Vec<String> {
    let mut shown = Vec::new();
    for piece in pieces {
        match piece {
            ReactPiece::Reasoning(text) => shown.push(format!("think {text}")),
            ReactPiece::Thought(text) => shown.push(format!("thought {text}")),
            ReactPiece::ThoughtEnd | ReactPiece::CallBegun(_) => {}
            ReactPiece::Call(call) => shown.push(match &call.arguments {
                Ok(arguments) => {
                    format!("call {} {}", call.name, Value::Object(arguments.clone()))
                }
                Err(text) => format!("bad {} {text}", call.name),
            }),
            ReactPiece::Answer(text) => shown.push(format!("answer {text}")),
        }
    }
    shown.extend(end.problem.map(|problem| format!("{problem:?}")));
    shown.extend(end.has_dropped.then(|| "dropped".to_owned()));
    shown
}

#[test]
fn replies_are_read_as_they_are_meant() {
    assert!(REPLIES.len() >= 80, "{}", REPLIES.len());
    for (reply, expected) in REPLIES {
        let (pieces, end) = ReactParser::parse(reply);
        assert_eq!(shown(&pieces, end), *expected, "{reply}");
    }
}

#[test]
fn a_call_is_announced_before_its_arguments_and_a_thought_has_an_end() {
    let (pieces, _) = ReactParser::parse("Thought: a\nAction: add\nArgs: {}");
    let kinds: Vec<_> = pieces
        .iter()
        .map(|piece| match piece {
            ReactPiece::Reasoning(_) => "reasoning",
            ReactPiece::Thought(_) => "thought",
            ReactPiece::ThoughtEnd => "end",
            ReactPiece::CallBegun(_) => "begun",
            ReactPiece::Call(_) => "call",
            ReactPiece::Answer(_) => "answer",
        })
        .collect();
    assert_eq!(kinds, ["thought", "end", "begun", "call"]);
}

#[test]
fn an_answer_without_a_label_is_passed_on_before_it_ends() {
    let (mut parser, mut out) = (ReactParser::default(), Vec::new());
    parser.feed(&"word ".repeat(300), &mut out);
    assert!(matches!(out.as_slice(), [ReactPiece::Answer(text)] if text.len() > 1000), "{out:?}");
    out.clear();
    parser.feed("\nAction: add\nArgs: {}", &mut out);
    let end = parser.finish(&mut out);
    assert_eq!(shown(&out, end), ["call add {}"], "labels still count");
}

#[test]
fn long_arguments_names_and_lists_of_actions_are_cut() {
    let long = format!("Action: add\nArgs: {{\"a\": \"{}\"}}", "x".repeat(2 << 20));
    let (pieces, _) = ReactParser::parse(&long);
    let Some(ReactPiece::Call(call)) = pieces.last() else { panic!() };
    assert_eq!(call.arguments.as_ref().unwrap_err().len(), 4096);
    let (pieces, _) = ReactParser::parse(&format!("Action: {}", "x".repeat(9999)));
    assert!(matches!(&pieces[0], ReactPiece::CallBegun(name) if name.len() == 511));
    let (pieces, end) = ReactParser::parse(&"Action: add\n".repeat(200));
    let calls = pieces.iter().filter(|piece| matches!(piece, ReactPiece::Call(_))).count();
    assert_eq!((calls, end.has_dropped), (128, true));
}

#[test]
fn problems_say_how_to_do_it_right() {
    insta::assert_snapshot!(ReactProblem::NoAction, @"Error: your reply has a thought, but neither an action nor an answer. Nothing was run. To use a tool, write `Action:` with its exact name and `Args:` with one JSON object, each at the beginning of a line. To answer, write `Final Answer:` and your answer after it.");
}

#[test]
fn reasoning_is_removed_from_a_reply() {
    let check = |text: &str, expected: &str| {
        assert_eq!(switchboard_react::strip_reasoning(text), expected, "{text}");
    };
    check("<think>a</think> b", "b");
    check("a</THINK>b", "b");
    check("b <think>never", "b");
    check("x<think>a</think>y<thinking>b</thinking>z", "xyz");
    check("plain", "plain");
}
