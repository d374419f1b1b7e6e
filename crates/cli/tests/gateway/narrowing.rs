//! Paths, headers and queries can reduce what a client sees, never extend it.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::ScriptedServer;

use crate::board::{NOTES, SHOP, TwoServers, meta_and, shop_tools, two_servers};
use crate::peer::{BOTH, Era, Peer, new_session};
use crate::support::{Home, Serve, dynamic, server};

type Headers<'a> = &'a [(&'a str, &'a str)];
/// Paths and headers, and whether something is seen there.
type Places<'a> = &'a [(&'a str, Headers<'a>, bool)];
/// A path and headers, and the tools that they leave.
type Row<'a> = (&'a str, Headers<'a>, &'a [&'a str]);

#[tokio::test]
async fn each_place_narrows_and_all_of_them_together() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let rows: [Row<'_>; 17] = [
        ("/mcp/servers/shop", &[], &SHOP),
        ("/mcp/servers/notes", &[], &NOTES),
        ("/mcp/toolsets/look", &[], &["shop__find", "shop__price"]),
        (
            "/mcp/toolsets/look,notes",
            &[],
            &["shop__find", "shop__price", "notes__read", "notes__write"],
        ),
        ("/mcp/toolsets/look", &[("X-MCP-Toolsets", "buy")], &["shop__price"]),
        ("/mcp/toolsets/look?toolsets=buy", &[], &["shop__price"]),
        ("/mcp/servers/notes?toolsets=look", &[], &[]),
        ("/mcp?toolsets=buy", &[], &["shop__price", "shop__order"]),
        (
            "/mcp",
            &[("X-MCP-Toolsets", "buy , notes")],
            &["shop__price", "shop__order", "notes__read", "notes__write"],
        ),
        (
            "/mcp",
            &[("X-MCP-Toolsets", "")],
            &["shop__find", "shop__price", "shop__order", "notes__read", "notes__write"],
        ),
        (
            "/mcp",
            &[("X-MCP-Tools", "shop__find,notes.read,nothing")],
            &["shop__find", "notes__read"],
        ),
        ("/mcp?tools=shop__find", &[("X-MCP-Tools", "notes__read")], &[]),
        ("/mcp", &[("X-MCP-Readonly", "true")], &["shop__find", "shop__price"]),
        (
            "/mcp",
            &[("X-MCP-Readonly", "false")],
            &["shop__find", "shop__price", "shop__order", "notes__read", "notes__write"],
        ),
        ("/mcp?readonly=1", &[("X-MCP-Readonly", "false")], &["shop__find", "shop__price"]),
        (
            "/mcp/toolsets/buy",
            &[("X-MCP-Readonly", "1"), ("X-MCP-Tools", "shop__price,shop__order")],
            &["shop__price"],
        ),
        (
            "/mcp/servers/shop",
            &[("X-MCP-Toolsets", "buy"), ("X-MCP-Tools", "shop__order")],
            &["shop__order"],
        ),
    ];
    check(&serve, &rows).await;
}

#[tokio::test]
async fn what_is_said_twice_holds_twice() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let rows: [Row<'_>; 9] = [
        // In whatever order: a proxy adds its own behind those of a client.
        (
            "/mcp",
            &[("X-MCP-Readonly", "false"), ("X-MCP-Readonly", "true")],
            &["shop__find", "shop__price"],
        ),
        (
            "/mcp",
            &[("X-MCP-Readonly", "true"), ("X-MCP-Readonly", "false")],
            &["shop__find", "shop__price"],
        ),
        ("/mcp", &[("X-MCP-Readonly", "false, true")], &["shop__find", "shop__price"]),
        ("/mcp", &[("X-MCP-Toolsets", "look"), ("X-MCP-Toolsets", "buy,notes")], &["shop__price"]),
        (
            "/mcp",
            &[("X-MCP-Tools", "shop__find,shop.order"), ("X-MCP-Tools", "shop__order")],
            &["shop__order"],
        ),
        ("/mcp?tools=shop__find,notes__read&tools=notes__read", &[], &["notes__read"]),
        ("/mcp?tools=shop__find&tools=notes__read", &[], &[]),
        // One tool in two spellings.
        ("/mcp?tools=shop__find", &[("X-MCP-Tools", "shop.find,notes.read")], &["shop__find"]),
        ("/mcp?tools=shop.find", &[("X-MCP-Tools", "shop__find")], &["shop__find"]),
    ];
    check(&serve, &rows).await;
}

/// Both eras list exactly these tools, and call no others.
async fn check(serve: &Serve, rows: &[Row<'_>]) {
    for era in BOTH {
        for (path, headers, expected) in rows {
            let client = Peer::try_open(era, serve, path, headers).await.unwrap();
            assert_eq!(client.list().await, *expected, "{era:?} {path} {headers:?}");
            // What is not listed is not called either.
            for tool in SHOP.iter().chain(&NOTES) {
                let answer = client.ask("tools/call", json!({"name": tool, "arguments": {}})).await;
                let told = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
                let is_unknown = told.starts_with(&format!("there is no tool '{tool}' here"));
                let is_listed = expected.contains(tool);
                assert_eq!(is_unknown, !is_listed, "{era:?} {path} {headers:?} {answer}");
                if !is_listed {
                    assert_eq!(answer["result"]["isError"], true, "{answer}");
                }
            }
        }
    }
}

#[tokio::test]
async fn nothing_widens_what_is_configured() {
    let TwoServers { home, shop: _shop, notes: _notes } =
        two_servers("deny_toolsets: [notes]").await;
    let serve = home.serve_with(&["--tool-sets", "look"]).await;
    let refused: [(&str, Headers<'_>, u16); 14] = [
        ("/mcp", &[("X-MCP-Toolsets", "buy")], 400),
        ("/mcp", &[("X-MCP-Toolsets", "look,buy")], 400),
        ("/mcp?toolsets=buy", &[], 400),
        ("/mcp?toolsets=shop", &[], 400),
        ("/mcp/toolsets/buy", &[], 404),
        ("/mcp/toolsets/look,buy", &[], 404),
        ("/mcp/toolsets/notes", &[], 404),
        ("/mcp/servers/notes", &[], 404),
        ("/mcp/servers/%ff", &[], 400),
        ("/mcp/toolsets/look", &[("X-MCP-Toolsets", "buy")], 400),
        ("/mcp", &[("X-MCP-Readonly", "perhaps")], 400),
        ("/mcp", &[("X-MCP-Readonly", "true"), ("X-MCP-Readonly", "perhaps")], 400),
        ("/mcp", &[("X-MCP-Toolsets", "look"), ("X-MCP-Toolsets", "buy")], 400),
        ("/mcp", &[("X-MCP-Toolsets", "look"), ("X-MCP-Toolsets", "buy,look")], 400),
    ];
    for era in BOTH {
        for (path, headers, status) in refused {
            let answer = Peer::try_open(era, &serve, path, headers).await;
            let (found, body) = answer.unwrap_err();
            assert_eq!(found, status, "{era:?} {path} {headers:?}: {body}");
            assert!(body.is_object(), "{era:?} {path} {headers:?}: {body}");
        }
        let shown: [(&str, Headers<'_>, &[&str]); 3] = [
            ("/mcp", &[], &["shop__find", "shop__price"]),
            ("/mcp/servers/shop", &[], &["shop__find", "shop__price"]),
            ("/mcp", &[("X-MCP-Tools", "shop__order,shop__price,notes__read")], &["shop__price"]),
        ];
        for (path, headers, expected) in shown {
            let client = Peer::try_open(era, &serve, path, headers).await.unwrap();
            assert_eq!(client.list().await, expected, "{era:?} {path} {headers:?}");
        }
        let dynamic = Peer::open(era, &serve, "/mcp?dynamic=true").await;
        let arguments = json!({"name": "shop__order", "arguments": {}});
        let told = dynamic.refused("call_tool", arguments).await;
        assert!(told.starts_with("there is no tool 'shop__order' here"), "{told}");
    }
    assert_eq!(board_calls(&serve).await, 0);
}

/// Calls that led to a tool; refused ones are recorded too.
async fn board_calls(serve: &Serve) -> usize {
    let list = serve.get("/api/v1/calls").await;
    list["calls"].as_array().unwrap().iter().filter(|call| !call["tool"].is_null()).count()
}

#[tokio::test]
async fn a_narrowed_dynamic_connection_begins_with_its_sets_and_switches_only_them() {
    let board = two_servers("exposure: dynamic, tool_sets: [notes]").await;
    let serve = board.home.serve().await;
    for era in BOTH {
        let client = Peer::open(era, &serve, "/mcp").await;
        assert_eq!(client.list().await, meta_and(&NOTES));
        let client = Peer::open(era, &serve, "/mcp/toolsets/look").await;
        assert_eq!(client.list().await, meta_and(&["shop__find", "shop__price"]), "{era:?}");
        let told = client.refused("enable_toolset", json!({"name": "buy"})).await;
        assert_eq!(told, "there is no toolset 'buy' here; there are: look");
        let told = client.refused("call_tool", json!({"name": "shop__order"})).await;
        assert!(told.starts_with("there is no tool 'shop__order' here"), "{told}");
        let client = Peer::open(era, &serve, "/mcp/toolsets/look?toolsets=buy,notes").await;
        assert_eq!(client.list().await, meta_and(&["shop__price"]), "what is in both, {era:?}");
        let client = Peer::open(era, &serve, "/mcp/servers/shop").await;
        let told = client.refused("enable_toolset", json!({"name": "notes"})).await;
        assert_eq!(told, "there is no toolset 'notes' here; there are: look, buy, shop");
    }
}

/// A list that names nothing is no way to see everything, and what cannot be read is told with its place.
#[tokio::test]
async fn a_wish_that_cannot_be_read_is_refused_with_its_place() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let neither = "'maybe' is neither `true`, `1`, `yes`, `on` nor `false`, `0`, `no`, `off`";
    let rows: [(&str, Headers<'_>, u16, String); 6] = [
        ("/mcp/toolsets/,", &[], 404, "the path names no toolset".into()),
        ("/mcp/toolsets/%20", &[], 404, "the path names no toolset".into()),
        ("/mcp?readonly=maybe", &[], 400, format!("readonly: {neither}")),
        ("/mcp?dynamic=maybe", &[], 400, format!("dynamic: {neither}")),
        ("/mcp", &[("X-MCP-Readonly", "maybe")], 400, format!("X-MCP-Readonly: {neither}")),
        (
            "/mcp",
            &[("X-MCP-Tools", "s\u{fc}l")],
            400,
            "the header X-MCP-Tools contains characters".into(),
        ),
    ];
    for era in BOTH {
        for (path, headers, status, message) in &rows {
            let opened = Peer::try_open(era, &serve, path, headers).await;
            let Err((code, body)) = opened else { panic!("{era:?} {path} {headers:?} is served") };
            assert_eq!(code, *status, "{era:?} {path} {headers:?} {body}");
            let told = body["error"]["message"].as_str().unwrap_or_default();
            assert!(told.starts_with(message.as_str()), "{era:?} {path}: {body}");
        }
    }
}

#[tokio::test]
async fn a_legacy_session_keeps_the_scope_of_its_handshake() {
    let board = two_servers("").await;
    let serve = board.home.serve().await;
    let narrowed = Peer::open(Era::Legacy, &serve, "/mcp/toolsets/look").await;
    let open = Peer::open(Era::Legacy, &serve, "/mcp").await;
    let at = async |path: &str, session: &Peer, headers: Headers<'_>| {
        let mut client = Peer::try_open(Era::Legacy, &serve, path, headers).await.unwrap();
        client.session.clone_from(&session.session);
        (client.status().await, client)
    };
    // The session is no key to a wider place, and the wider session not to a narrow one.
    let (status, client) = at("/mcp", &narrowed, &[]).await;
    assert_eq!(status, 200);
    assert_eq!(client.list().await, ["shop__find", "shop__price"]);
    let (status, client) = at("/mcp", &narrowed, &[("X-MCP-Toolsets", "buy")]).await;
    assert_eq!(status, 200);
    assert_eq!(client.list().await, ["shop__find", "shop__price"]);
    assert_eq!(at("/mcp/toolsets/buy", &narrowed, &[]).await.0, 404);
    assert_eq!(at("/mcp/servers/shop", &narrowed, &[]).await.0, 404);
    assert_eq!(at("/mcp/servers/shop", &open, &[]).await.0, 404);
}

/// A server that has tools, and one that has a prompt and a resource and no tools, which the set `library` names.
async fn with_docs(gateway: &str) -> (ScriptedServer, ScriptedServer, Home) {
    let shop = server(shop_tools()).await;
    let docs = ScriptedServer::builder().prompts(["guide"]).resources(["docs://guide"]);
    let docs = docs.start().await;
    let home = Home::new(format!(
        "switchboard:\n  gateway: {{{gateway}}}\n  toolsets:\n    \
         - {{name: library, description: Reads, servers: [docs]}}\n    \
         - {{name: paper, description: Reads, tools: [\"docs.*\"]}}\n  \
         toolbox:\n    mcps:\n      - {}\n      - {}\n",
        dynamic("shop", &shop.url()),
        dynamic("docs", &docs.url())
    ));
    (shop, docs, home)
}

/// Whether a client sees what `docs` has. Either everything of it is there, or nothing.
async fn sees_docs(client: &Peer) -> bool {
    let count = async |method: &str, member: &str| {
        let answer = client.ask(method, json!({})).await;
        answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}")).len()
    };
    let prompts = count("prompts/list", "prompts").await;
    assert_eq!(count("resources/list", "resources").await, prompts);
    let got = client.ask("prompts/get", json!({"name": "docs__guide"})).await;
    assert_eq!(got["result"].is_object(), prompts == 1, "{got}");
    prompts == 1
}

#[tokio::test]
async fn what_a_server_without_tools_has_is_seen_by_its_toolsets() {
    let rows: [(&str, &[&str], Places<'_>); 8] = [
        (
            "",
            &[],
            &[
                ("/mcp", &[], true),
                ("/mcp/servers/docs", &[], true),
                ("/mcp/servers/shop", &[], false),
                ("/mcp/toolsets/docs", &[], true),
                ("/mcp/toolsets/library", &[], true),
                ("/mcp/toolsets/shop", &[], false),
                ("/mcp/toolsets/library?toolsets=docs", &[], true),
                ("/mcp/toolsets/library?toolsets=shop", &[], false),
                ("/mcp", &[("X-MCP-Toolsets", "docs,shop")], true),
                ("/mcp", &[("X-MCP-Tools", "shop__find")], false),
                ("/mcp", &[("X-MCP-Readonly", "true")], false),
                ("/mcp?dynamic=true", &[], false),
            ],
        ),
        ("", &["--tool-sets", "docs"], &[("/mcp", &[], true), ("/mcp/toolsets/docs", &[], true)]),
        ("", &["--tool-sets", "shop"], &[("/mcp", &[], false), ("/mcp/servers/docs", &[], false)]),
        (
            "deny_toolsets: [docs]",
            &[],
            &[("/mcp", &[], false), ("/mcp/toolsets/library", &[], false)],
        ),
        ("deny_toolsets: [library]", &[], &[("/mcp", &[], false)]),
        ("allow_toolsets: [shop]", &[], &[("/mcp", &[], false)]),
        ("allow_toolsets: [shop, library]", &[], &[("/mcp", &[], true)]),
        (
            "exposure: dynamic, tool_sets: [docs]",
            &[],
            &[("/mcp", &[], true), ("/mcp/toolsets/shop", &[], false)],
        ),
    ];
    for (gateway, arguments, places) in rows {
        let (_shop, _docs, home) = with_docs(gateway).await;
        let serve = home.serve_with(arguments).await;
        for era in BOTH {
            for (path, headers, expected) in places {
                let client = Peer::try_open(era, &serve, path, headers).await.unwrap();
                let place = format!("{era:?} {gateway} {arguments:?} {path} {headers:?}");
                assert_eq!(sees_docs(&client).await, *expected, "{place}");
            }
        }
    }
}

#[tokio::test]
async fn a_set_without_tools_is_switched_like_any_other() {
    let (_shop, _docs, home) = with_docs("exposure: dynamic").await;
    let serve = home.serve().await;
    let path = new_session(&serve, "s").await;
    let (all, docs, session) = ("/mcp", "/mcp/servers/docs", path.as_str());
    for (era, path) in [(Era::Legacy, all), (Era::Legacy, docs), (Era::Modern, session)] {
        let client = Peer::open(era, &serve, path).await;
        assert!(!sees_docs(&client).await, "{era:?}");
        for set in ["docs", "library"] {
            client.enable(set).await;
            assert!(sees_docs(&client).await, "{era:?} {set}");
            client.disable(set).await;
            assert!(!sees_docs(&client).await, "{era:?} {set}");
        }
        if path != docs {
            client.enable("shop").await;
            assert!(!sees_docs(&client).await, "{era:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_policy_hides_is_answered_like_one_that_never_was() {
    for gateway in [
        "deny_toolsets: [docs]",
        "deny_toolsets: [library]",
        "deny_toolsets: [paper]",
        "allow_toolsets: [shop]",
    ] {
        let (_shop, _docs, home) = with_docs(gateway).await;
        let serve = home.serve().await;
        for era in BOTH {
            let refused = async |server: &str| -> (u16, String) {
                let path = format!("/mcp/servers/{server}");
                let (status, body): (_, Value) =
                    Peer::try_open(era, &serve, &path, &[]).await.unwrap_err();
                (status.as_u16(), body.to_string().replace(server, "NAME"))
            };
            let unknown = refused("never").await;
            assert_eq!(unknown.0, 404);
            assert_eq!(refused("docs").await, unknown, "{era:?} {gateway}");
        }
        let sets = serve.text("/api/v1/toolsets").await;
        assert!(sets.contains("shop") && !sets.contains("docs"), "{gateway}: {sets}");
        let headers: Headers<'_> = &[("x-mcp-toolsets", "docs")];
        let (_, body): (_, Value) =
            Peer::try_open(Era::Modern, &serve, "/mcp", headers).await.unwrap_err();
        assert!(!body.to_string().replace("toolset 'docs'", "").contains("docs"), "{body}");
    }
}

#[tokio::test]
async fn a_dynamic_connection_cannot_begin_above_the_limit_of_active_sets() {
    let board = two_servers("exposure: dynamic, max_active_toolsets: 2").await;
    let serve = board.home.serve().await;
    let told = "at most 2 toolsets may be active (max_active_toolsets), and this connection would begin with 3: buy, look, \
                notes; name fewer, and enable others when they are needed";
    let rows: [(&str, Headers<'_>); 5] = [
        ("/mcp/toolsets/look,buy,notes", &[]),
        ("/mcp?toolsets=look,buy,notes", &[]),
        ("/mcp", &[("X-MCP-Toolsets", "look, buy, notes")]),
        ("/mcp/servers/shop", &[("X-MCP-Toolsets", "look,buy,notes")]),
        ("/mcp/toolsets/look,buy,notes", &[("X-MCP-Toolsets", "notes,look,buy,shop")]),
    ];
    for era in BOTH {
        for (path, headers) in rows {
            let answer = Peer::try_open(era, &serve, path, headers).await;
            let (status, body) = answer.unwrap_err();
            assert_eq!(status, 400, "{era:?} {path} {headers:?}: {body}");
            assert_eq!(body["error"]["message"], told, "{era:?} {path} {headers:?}");
        }
        let client = Peer::open(era, &serve, "/mcp/toolsets/look,notes").await;
        let expected = ["shop__find", "shop__price", "notes__read", "notes__write"];
        assert_eq!(client.list().await, meta_and(&expected), "{era:?}");
        // Two places that name three sets each begin with what both name.
        let headers = [("X-MCP-Toolsets", "notes,shop,buy")];
        let path = "/mcp/toolsets/look,buy,notes";
        let client = Peer::try_open(era, &serve, path, &headers).await.unwrap();
        assert_eq!(
            client.list().await,
            meta_and(&["shop__price", "shop__order", "notes__read", "notes__write"])
        );
        // A session has sets of its own; there the names only narrow.
        let session = new_session(&serve, &format!("{era:?}").to_lowercase()).await;
        let narrowed = Peer::open(era, &serve, &format!("{session}?toolsets=look,buy,notes")).await;
        assert_eq!(narrowed.list().await, meta_and(&[]), "{era:?}");
    }
    // Where nothing is switched there is nothing to count.
    let board = two_servers("max_active_toolsets: 2").await;
    let serve = board.home.serve().await;
    for era in BOTH {
        let client = Peer::open(era, &serve, "/mcp/toolsets/look,buy,notes").await;
        assert_eq!(client.list().await.len(), 5, "{era:?}");
        let dynamic = "/mcp?toolsets=look,buy,notes&dynamic=true";
        let (status, _) = Peer::try_open(era, &serve, dynamic, &[]).await.unwrap_err();
        assert_eq!(status, 400, "{era:?}");
    }
}
