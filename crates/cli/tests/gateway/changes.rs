//! When servers change their lists, each affected client is notified once, and no other client is notified.

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool, wait_until};

use crate::board::{TwoServers, shop_tools, two_servers_yaml};
use crate::peer::{BOTH, Era, Peer, new_session};
use crate::support::{Home, PATIENCE};

/// Two servers of one era.
async fn board(era: Era, gateway: &str) -> TwoServers {
    let start = async |tools: Vec<Tool>| {
        let builder = ScriptedServer::builder().tools(tools);
        match era {
            Era::Legacy => builder.legacy().start().await,
            Era::Modern => builder.modern().start().await,
        }
    };
    let shop = start(shop_tools()).await;
    let notes = start(vec![Tool::echo("read"), Tool::echo("write")]).await;
    let home = Home::new(two_servers_yaml(gateway, &shop.url(), &notes.url()));
    TwoServers { shop, notes, home }
}

/// Waits until the gateway listens to both servers.
async fn listened_to(board: &TwoServers) {
    let open = async || {
        let streams = [board.shop.open_streams(), board.notes.open_streams()];
        streams.iter().all(|count| *count > 0).then_some(())
    };
    wait_until(PATIENCE, open).await;
}

fn more_shop_tools() -> Vec<Tool> {
    let mut tools = shop_tools();
    tools.push(Tool::echo("refund"));
    tools
}

#[tokio::test]
async fn each_change_is_told_once_to_whom_it_concerns() {
    for upstream in BOTH {
        let board = board(upstream, "").await;
        let serve = board.home.serve().await;
        listened_to(&board).await;
        for era in BOTH {
            board.shop.set_tools_and_notify(shop_tools()).await;
            serve_has(&serve, "shop.refund", false).await;
            let open = |path: &'static str| Peer::open(era, &serve, path);
            let everything = open("/mcp").await;
            let (shop, notes) = (open("/mcp/servers/shop").await, open("/mcp/servers/notes").await);
            let look = open("/mcp/toolsets/look").await;
            let hearings =
                [everything.hear().await, shop.hear().await, notes.hear().await, look.hear().await];
            board.shop.set_tools_and_notify(more_shop_tools()).await;
            hearings[0].settles(1).await;
            let heard: Vec<_> = hearings.iter().map(crate::hearing::Hearing::changes).collect();
            assert_eq!(heard, [1, 1, 0, 0], "{upstream:?} upstream, {era:?} client");
            assert_eq!(everything.list().await.len(), 6);
            everything.done("shop__refund", json!({})).await;
            // The same list again is no change.
            board.shop.set_tools_and_notify(more_shop_tools()).await;
            hearings[0].settles(1).await;
            board.shop.set_tools_and_notify(shop_tools()).await;
            hearings[0].settles(2).await;
            assert_eq!(hearings[2].changes() + hearings[3].changes(), 0);
        }
    }
}

async fn serve_has(serve: &crate::support::Serve, tool: &str, is_expected: bool) {
    wait_until(PATIENCE, async || {
        let has = serve.tool_names().await.iter().any(|name| name == tool);
        (has == is_expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_storm_is_a_few_words() {
    for upstream in BOTH {
        let board = board(upstream, "").await;
        let serve = board.home.serve().await;
        listened_to(&board).await;
        let (legacy, modern) = (
            Peer::open(Era::Legacy, &serve, "/mcp").await,
            Peer::open(Era::Modern, &serve, "/mcp").await,
        );
        let hearings = [legacy.hear().await, modern.hear().await];
        // Two hundred cries of wolf, then two hundred about one real change.
        board.shop.notify_list_changed(200).await;
        hearings[0].settles(0).await;
        board.shop.set_tools(more_shop_tools());
        board.shop.notify_list_changed(200).await;
        hearings[0].settles(1).await;
        assert_eq!(hearings[1].changes(), 1, "{upstream:?}");
        // And a change with each of them, as a server has that registers its tools one by one.
        for n in 0..200 {
            let mut tools = more_shop_tools();
            tools.extend((0..=n).map(|n| Tool::echo(format!("extra_{n}"))));
            board.shop.set_tools_and_notify(tools).await;
        }
        serve_has(&serve, "shop.extra_199", true).await;
        for (hearing, peer) in hearings.iter().zip([&legacy, &modern]) {
            hearing.until(2).await;
            // Four or five; more where two hundred changes take seconds.
            let told = hearing.changes() - 1;
            assert!(told <= 50, "{upstream:?}: {told} words about 200 changes");
            wait_until(PATIENCE, async || (peer.list().await.len() == 206).then_some(())).await;
        }
    }
}

#[tokio::test]
async fn a_dynamic_client_hears_only_of_what_it_has_enabled() {
    let board = board(Era::Legacy, "exposure: dynamic").await;
    let serve = board.home.serve().await;
    listened_to(&board).await;
    let path = new_session(&serve, "s").await;
    for (era, path) in [(Era::Legacy, "/mcp"), (Era::Modern, path.as_str())] {
        board.shop.set_tools_and_notify(shop_tools()).await;
        serve_has(&serve, "shop.refund", false).await;
        let client = Peer::open(era, &serve, path).await;
        let hearing = client.hear().await;
        board.shop.set_tools_and_notify(more_shop_tools()).await;
        serve_has(&serve, "shop.refund", true).await;
        hearing.settles(0).await;
        client.enable("shop").await;
        hearing.until(1).await;
        assert_eq!(client.list().await.len(), 7 + 4);
        board.shop.set_tools_and_notify(shop_tools()).await;
        hearing.settles(2).await;
        assert_eq!(client.list().await.len(), 7 + 3);
        client.disable("shop").await;
        hearing.settles(3).await;
    }
}

#[tokio::test]
async fn a_server_that_loses_its_sessions_is_healed_unseen() {
    for upstream in BOTH {
        let board = board(upstream, "").await;
        let serve = board.home.serve().await;
        listened_to(&board).await;
        for era in BOTH {
            let client = Peer::open(era, &serve, "/mcp").await;
            let hearing = client.hear().await;
            client.done("shop__price", json!({"n": 1})).await;
            board.shop.drop_sessions();
            client.done("shop__price", json!({"n": 2})).await;
            board.shop.restart_on_same_port().await;
            client.done("shop__price", json!({"n": 3})).await;
            hearing.settles(0).await;
            // And changes are still heard of.
            listened_to(&board).await;
            board.shop.set_tools_and_notify(more_shop_tools()).await;
            hearing.settles(1).await;
            board.shop.set_tools_and_notify(shop_tools()).await;
            hearing.settles(2).await;
        }
    }
}

#[tokio::test]
async fn a_reload_of_the_configuration_is_told_once() {
    let board = board(Era::Legacy, "").await;
    let serve = board.home.serve().await;
    listened_to(&board).await;
    let peers = [
        Peer::open(Era::Legacy, &serve, "/mcp").await,
        Peer::open(Era::Modern, &serve, "/mcp").await,
    ];
    let hearings = [peers[0].hear().await, peers[1].hear().await];
    let yaml = two_servers_yaml("deny_toolsets: [buy]", &board.shop.url(), &board.notes.url());
    board.home.rewrite(yaml);
    serve.signal("HUP");
    hearings[0].settles(1).await;
    assert_eq!(hearings[1].changes(), 1);
    for peer in &peers {
        assert_eq!(peer.list().await, ["shop__find", "notes__read", "notes__write"]);
        let answer = peer.ask("tools/call", json!({"name": "shop__order", "arguments": {}})).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let told = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(told.starts_with("there is no tool 'shop__order' here"), "{told}");
    }
}
