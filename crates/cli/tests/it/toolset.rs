//! `toolset list`, `show` and `draft`, and the warnings of `check` about toolsets.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{Reply, Tool};

use crate::support::{Home, dynamic, server, with, yaml};

#[tokio::test]
async fn toolsets_are_shown_and_drafted_embedded_and_at_an_instance() {
    let groups = json!({"toolsets": [{"key": "quotes", "tools": ["getQuote", "batchQuotes"],
                                      "definition": {"description": "Prices"}}]});
    let one = server([
        Tool::new("getQuote"),
        Tool::new("batchQuotes"),
        Tool::new("news_latest"),
        Tool::new("news_search"),
        Tool::new("list_toolsets").replies(Reply::Text(groups.to_string())),
    ])
    .await;
    let home = Home::new(yaml(&[], &[dynamic("one", &one.url())]));
    home.file("own.json", json!([{"name": "mine", "tools": ["getQuote"]}]).to_string());
    let serve = home.serve().await;
    for more in [String::new(), format!(" --url {}/mcp", serve.url)] {
        let list = home.line(&format!("toolset list --json{more}")).expect(0).json();
        assert_eq!(
            (&list["toolsets"][0]["name"], &list["toolsets"][0]["tools"]),
            (&json!("one"), &json!(5))
        );
        let shown = home.line(&format!("toolset show one{more}")).expect(0).stdout;
        assert!(shown.contains("  one.getQuote\n"), "{shown}");
        let unknown = home.line(&format!("toolset show onee{more}")).expect(2).stderr;
        assert!(unknown.contains("did you mean 'one'?"), "{unknown}");
        let draft = home.line(&format!("toolset draft --server one{more}")).expect(0);
        assert_eq!(
            draft.stdout,
            "switchboard:\n  toolsets:\n    - name: one-quotes\n      description: Prices\n      tools:\n        \
             - one.getQuote\n        - one.batchQuotes\n    - name: one-news\n      description: \"Tools of one \
             about news\"\n      tools:\n        - \"one.news_*\"\n"
        );
        let from = home.line(&format!("toolset draft --server one --from own.json --json{more}"));
        assert_eq!(from.expect(0).json()["toolsets"][0]["name"], "one-mine");
        home.line(&format!("toolset draft --server two{more}")).expect(2);
    }
    let pasted = home.line("toolset draft --server one").expect(0).stdout;
    let config = std::fs::read_to_string(home.path().join("switchboard.yaml")).unwrap();
    home.file("both.yaml", config.replacen("switchboard:", pasted.trim_end(), 1));
    home.line("check --config both.yaml").expect(0);
}

#[tokio::test]
async fn patterns_of_toolsets_that_match_nothing_are_named_with_their_place() {
    let one = server([Tool::echo("echo").description("d")]).await;
    let away = with(&dynamic("away", "http://127.0.0.1:1/mcp"), "required: false");
    let sets = "  toolsets:\n    - name: look\n      description: d\n      tools:\n        - one.eco\n        - one.e*\n        - away.x\n";
    let servers = [dynamic("one", &one.url()), away];
    let home = Home::new(format!("{}{sets}", yaml(&[], &servers)));
    let checked = home.line("check --connect").expect(0);
    let text = std::fs::read_to_string(home.path().join("switchboard.yaml")).unwrap();
    let line = text.lines().position(|line| line.contains("one.eco")).unwrap() + 1;
    let warning = format!(
        "warning: toolset 'look' names `one.eco`, and no tool is called so\n   --> switchboard.yaml:{line}:11\n    = help: \
         did you mean `one.echo`?\n"
    );
    assert!(checked.stderr.contains(&warning), "{}", checked.stderr);
    assert_eq!(checked.stderr.matches("no tool is called so").count(), 1, "{}", checked.stderr);
    let json = home.line("check --connect --json").expect(0).json();
    assert_eq!(
        (&json["warnings"][0]["line"], &json["warnings"][0]["path"]),
        (&json!(line), &json!("switchboard.toolsets[0].tools[0]")),
        "{json}"
    );
    let doctor = home.line("doctor").expect(0).stdout;
    let warning = format!(
        "warn toolsets: switchboard.yaml:{line}:11: toolset 'look' names `one.eco`, and no tool is called so\n     hint: \
         did you mean `one.echo`?\n"
    );
    assert!(doctor.contains(&warning), "{doctor}");
}
