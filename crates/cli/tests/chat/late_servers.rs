//! Servers that are not required and do not answer: an embedded chat begins without them and takes their tools later.

use switchboard_test_support::{Fault, ScriptedServer, Stage, Tool};

use crate::program::Talking;
use crate::support::{Home, dynamic, server, with};

#[tokio::test]
async fn a_chat_begins_without_a_server_that_hangs_and_takes_its_tools_when_they_come() {
    let shop = server([Tool::echo("find")]).await;
    let hung = ScriptedServer::builder()
        .tools([Tool::echo("late")])
        .fault(Fault::Hang(Stage::Any))
        .start()
        .await;
    let waiting = "required: false, connect_timeout: 10m";
    let home = Home::new(format!(
        "switchboard:\n  toolbox:\n    mcps:\n      - {}\n      - {}\n",
        dynamic("shop", &shop.url()),
        with(&dynamic("hung", &hung.url()), waiting)
    ));
    let mut chat = Talking::start(home.command(&["chat"]));
    chat.says("; going on without it").await;
    let stderr = chat.stderr();
    let waited = stderr.split_once("s of 10m)").unwrap().0.rsplit_once('(').unwrap().1;
    assert!(waited.parse::<u32>().unwrap() < 20, "{stderr}");
    chat.type_line("/call shop__find {}");
    chat.answers("shop__find answered: {}").await;
    chat.type_line("/call hung__late {}");
    chat.answers("hung__late failed: ").await;

    // What hangs is given up by the server, and the next attempt succeeds.
    hung.clear_fault().await;
    hung.restart_on_same_port().await;
    chat.says("MCP server 'hung' is connected: 1 tools\n").await;
    chat.type_line("/call hung__late {\"n\": 1}");
    chat.answers("hung__late answered: {\"n\":1}").await;
    assert_eq!(chat.close().await.code(), Some(0), "{}", chat.stderr());
    assert_eq!(hung.stats().total_calls(), 1);
}
