//! `agent list` and `agent show`, embedded and at an instance.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::Tool;

use crate::support::{Home, dynamic, server, with, yaml};

const AGENTS: &str = "  agents:\n    - name: sales\n      description: Sells things\n      servers: [crm, away]\n      tools: {deny: [delete]}\n      limits: {max_concurrent: 2, timeout: 5s}\n    - name: whole\n";

#[tokio::test]
async fn agents_are_shown_embedded_and_at_an_instance() {
    let crm = server([Tool::echo("get"), Tool::echo("delete")]).await;
    let away = with(&dynamic("away", "http://127.0.0.1:1/mcp"), "required: false");
    let servers = [dynamic("crm", &crm.url()), away];
    let home = Home::new(format!("{}{AGENTS}", yaml(&[], &servers)));
    let serve = home.serve().await;
    let places = [
        (String::new(), "http://127.0.0.1:8420".to_owned()),
        (format!(" --url {}", serve.url), serve.url.clone()),
    ];
    for (more, base) in places {
        let list = home.line(&format!("agent list --json{more}")).expect(0).json();
        let sales = json!({"name": "sales", "description": "Sells things", "servers": ["crm", "away"], "tools": 1});
        assert_eq!(list["agents"][0], sales);
        assert_eq!(list["agents"][1]["tools"], 2);
        let text = home.line(&format!("agent list{more}")).expect(0).stdout;
        assert!(text.contains("sales") && text.contains("crm, away"), "{text}");

        let url = format!("{base}/mcp/agents/sales/servers/crm");
        let shown = home.line(&format!("agent show sales --json{more}")).expect(0).json();
        assert_eq!(shown["servers"][0]["url"], url);
        assert_eq!(shown["servers"][1]["state"], "unavailable");
        assert_eq!(shown["limits"]["max_concurrent"], 2);
        let text = home.line(&format!("agent show sales{more}")).expect(0).stdout;
        for part in [&url, "max_concurrent=2, timeout=5s", "Sells things", "unavailable"] {
            assert!(text.contains(part), "{part}: {text}");
        }

        for (framework, class) in [
            ("openai", "MCPServerStreamableHttp"),
            ("semantic-kernel", "MCPStreamableHttpPlugin"),
            ("semantickernel", "MCPStreamableHttpPlugin"),
            ("agent-framework", "MCPStreamableHTTPTool"),
            ("azure-ai-foundry", "server_label"),
        ] {
            let line = format!("agent show sales --as {framework}{more}");
            let config = home.line(&line).expect(0).json();
            let text = config.to_string();
            assert!(text.contains(class) && text.contains(&url), "{framework}: {text}");
            let whole = home.line(&format!("{line} --json")).expect(0).json();
            assert_eq!(whole["config"], config, "{framework}");
        }
        let unknown = home.line(&format!("agent show sale{more}")).expect(2).stderr;
        assert!(unknown.contains("there is no agent 'sale'"), "{unknown}");
        home.line(&format!("agent show sales --as langchain{more}")).expect(2);
    }
    let unknown = home.line("agent show sale").expect(2).stderr;
    assert!(unknown.contains("did you mean 'sales'?"), "{unknown}");
}

#[tokio::test]
async fn without_agents_the_list_says_how_to_add_one() {
    let home = Home::new(yaml(&["{name: sum_numbers}"], &[]));
    let listed = home.line("agent list").expect(0);
    assert!(listed.stderr.contains("add `agents` to the configuration"), "{}", listed.stderr);
    assert_eq!(home.line("agent list --json").expect(0).json(), json!({"agents": []}));
}
