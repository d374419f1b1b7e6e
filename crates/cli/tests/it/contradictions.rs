//! Declared arguments that the server of their tool would refuse.

use serde_json::json;
use switchboard_test_support::Tool;

use crate::support::{Home, server};

#[tokio::test]
async fn check_connect_reports_a_fixed_value_that_the_server_would_refuse() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 100}}});
    let one = server([Tool::echo("echo").schema(schema), Tool::echo("other")]).await;
    let yaml = format!(
        "switchboard:\n  toolbox:\n    tools:\n    - name: one.echo\n      arguments:\n      - name: n\n        value: 735\n    mcps:\n    \
         - {{name: one, url: \"{}\", mode: dynamic, default_tool_config: {{}}}}\n",
        one.url()
    );
    let home = Home::new(yaml);
    home.line("check").expect(0);
    let outcome = home.line("check --connect").expect(1);
    for said in ["argument `n` has a fixed value", "maximum of 100", "switchboard.yaml:7:16"] {
        assert!(outcome.all().contains(said), "{said}: {}", outcome.all());
    }
    assert!(!outcome.all().contains("735"), "{}", outcome.all());
    let json = home.line("check --connect --json").expect(1).json();
    assert_eq!(json["warnings"][0]["path"], "switchboard.toolbox.tools[0].arguments[0].value");
    let listed = home.line("tool list --all").expect(0);
    let place = "toolbox.tools[0].arguments[0].value";
    assert!(
        listed.all().contains(place) && listed.all().contains("maximum of 100"),
        "{}",
        listed.all()
    );
    let shown = home.line("config show").expect(0);
    assert!(!shown.all().contains("735"), "{}", shown.all());
}
