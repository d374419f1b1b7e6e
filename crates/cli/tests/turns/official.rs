//! The vendors' own types accept every request of conversations that switch between all providers.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use switchboard_test_support::model_backends::{Backend, Step};
use switchboard_test_support::{Reply, Tool, peers};

use crate::lab::{ANTHROPIC, CHAT, CHATGPT, CODE_ASSIST, GEMINI, Lab, OPENAI, Plan, shop_tools};
use crate::switching::{all_pairs, walk};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn the_official_types_take_everything_that_was_sent() {
    let repository = root().join("../..");
    let places = ["../shared/validators", "../../shared/validators"];
    let Some(validators) = places.map(|it| repository.join(it)).into_iter().find(|it| it.exists())
    else {
        return;
    };
    let picture = json!({"content": [
        {"type": "text", "text": "a picture"},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]});
    let more = [
        Tool::echo("fails").replies(Reply::ToolError("no".into())),
        Tool::echo("picture").replies(Reply::Result(picture)),
    ];
    let tools = shop_tools().into_iter().chain(more).collect();
    let plan = Plan { tools, provider: "show_thinking: true, effort: high", ..Plan::default() };
    let lab = Lab::with(plan).await;
    walk(&lab, &all_pairs(&[CHATGPT, CHAT, ANTHROPIC, CODE_ASSIST])).await;
    let talk = lab.talk(json!({"toolsets": {"buy": false}})).await;
    let accounts = [OPENAI, CHATGPT, CHAT, ANTHROPIC, GEMINI, CODE_ASSIST];
    for (number, account) in accounts.into_iter().enumerate() {
        talk.chat.put("/toolsets/buy", json!({"enabled": number % 2 == 0})).await;
        talk.say(account.name, "think\ncall shop__picture {}\ncall shop__find {}").await;
        talk.chat.put("/toolsets/buy", json!({"enabled": number % 2 == 1})).await;
        talk.say(account.name, "think\ncall shop__find {}").await;
        let truncated = Step::text("I").call("shop__find", json!({"n": 1})).truncated();
        lab.fake.script(account.backend, [truncated]);
        talk.say(account.name, "go").await;
    }
    lab.is_clean();
    let directory = tempfile::tempdir().unwrap();
    let requests = lab.fake.requests().into_iter();
    let answers = requests.filter(|request| !request.path.contains(":loadCodeAssist"));
    let mut count = 0;
    for (number, request) in answers.enumerate() {
        let form = match request.backend {
            Backend::OpenAi | Backend::ChatGpt => "openai",
            Backend::Chat => "chat",
            Backend::Anthropic => "anthropic-beta",
            Backend::Gemini | Backend::CodeAssist => "gemini",
        };
        let file = directory.path().join(format!("{number:04}.{form}.json"));
        std::fs::write(file, request.body.to_string()).unwrap();
        count += 1;
    }
    assert!(count > 50, "{count} requests");
    let output = Command::new(peers::python())
        .arg(repository.join("e2e/models/check_bodies.py"))
        .args([directory.path(), &validators])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["wrong"], json!([]));
    assert_eq!(said["checked"], count);
}
