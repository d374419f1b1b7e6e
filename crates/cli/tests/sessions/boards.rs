//! Three boards of one database: a session is the same at each of them, whichever a request reaches.

use std::time::Duration;

use pretty_assertions::assert_eq;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use switchboard_test_support::{PostgresDatabase, ScriptedServer, Tool, wait_until};
use tokio::task::JoinSet;

use crate::board::{NOTES, SHOP, shop_tools, two_servers_yaml};
use crate::chat::{Api, Chat};
use crate::peer::{BOTH, Era, Peer, new_session};
use crate::support::{Home, PATIENCE, Serve, server};

struct Boards {
    homes: Vec<Home>,
    serves: Vec<Serve>,
    shop: ScriptedServer,
    _notes: ScriptedServer,
    _database: PostgresDatabase,
}

async fn boards() -> Boards {
    let database = PostgresDatabase::new();
    let shop = server(shop_tools()).await;
    let notes = server([Tool::echo("read"), Tool::echo("write")]).await;
    let yaml = two_servers_yaml("", &shop.url(), &notes.url());
    let yaml = format!(
        "{yaml}  security: {{egress: {{allow: [\"127.0.0.1\"]}}}}\n  store:\n    url: {}\n",
        database.url()
    );
    let homes: Vec<_> = (0..3).map(|_| Home::new(&yaml)).collect();
    let mut serves: Vec<_> = homes.iter().map(|home| home.start_serve(&[])).collect();
    for serve in &mut serves {
        serve.ready().await;
        serve
            .until_tools(&["shop.find", "shop.price", "shop.order", "notes.read", "notes.write"])
            .await;
    }
    Boards { homes, serves, shop, _notes: notes, _database: database }
}

impl Boards {
    /// The session at each board.
    fn chats(&self, id: &str) -> Vec<Chat> {
        self.serves.iter().map(|serve| Api::of(serve).chat(id)).collect()
    }
}

fn all() -> Vec<&'static str> {
    [&SHOP[..], &NOTES].concat()
}

/// The list without these tools.
fn without(tools: &[&str]) -> Vec<&'static str> {
    all().into_iter().filter(|tool| !tools.contains(tool)).collect()
}

fn sorted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut names: Vec<_> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_is_changed_at_one_board_is_true_at_the_next_at_once() {
    let boards = boards().await;
    let [one, two, three] = &boards.serves[..] else { panic!("three boards") };
    for (era, id) in BOTH.into_iter().zip(["legacy", "modern"]) {
        let path = new_session(one, id).await;
        let chats = boards.chats(id);
        let mut peer = Peer::open(era, one, &path).await;
        let mut seen = 0;
        for round in 0..6 {
            // Each request goes to another board than the one before.
            peer.moved_to(&boards.serves[(round + 1) % 3]);
            assert_eq!(sorted(peer.list().await), sorted(all()), "{era:?} {round}");
            chats[(round + 2) % 3].put("/tools/shop.order", json!({"enabled": false})).await;
            assert_eq!(
                sorted(peer.list().await),
                sorted(without(&["shop__order"])),
                "{era:?} {round}: a list at another board"
            );
            peer.moved_to(&boards.serves[round % 3]);
            // Without a list or a message of the other board, it could be called for a second more.
            assert_eq!(peer.list().await.len(), 4);
            let refused = peer.refused("shop__order", json!({})).await;
            assert!(refused.contains("order"), "{refused}");
            let revision = chats[round % 3].revision().await;
            assert!(revision > seen, "{revision} after {seen}");
            seen = revision;
            // The board that refused it a moment ago calls it now.
            chats[(round + 1) % 3].put("/tools/shop.order", json!({"enabled": null})).await;
            peer.done("shop__order", json!({"n": 1})).await;
        }
        assert_eq!(chats[0].revision().await, 13, "two steps in each round");
        for serve in [two, three] {
            peer.moved_to(serve);
            peer.done("shop__find", json!({})).await;
        }
    }
}

#[tokio::test]
async fn a_legacy_session_goes_on_at_any_board_and_ends_at_all_of_them() {
    let boards = boards().await;
    let [one, two, three] = &boards.serves[..] else { panic!("three boards") };
    let mut peer = Peer::open(Era::Legacy, one, "/mcp").await;
    for serve in [two, three, one] {
        peer.moved_to(serve);
        assert_eq!(sorted(peer.list().await), sorted(all()));
        peer.done("notes__read", json!({})).await;
    }
    peer.moved_to(two);
    let mut hearing = peer.hear().await;
    peer.moved_to(three);
    assert_eq!(peer.delete().await, StatusCode::NO_CONTENT);
    for serve in [three, one, two] {
        peer.moved_to(serve);
        // A board that served it within the last second may not have heard of it yet.
        wait_until(PATIENCE, async || (peer.status().await == StatusCode::NOT_FOUND).then_some(()))
            .await;
    }
    hearing.ended().await;
}

#[tokio::test]
async fn streams_at_one_board_hear_of_changes_at_another() {
    let boards = boards().await;
    let [one, two, three] = &boards.serves[..] else { panic!("three boards") };
    let path = new_session(one, "work").await;
    let chats = boards.chats("work");
    let events = chats[0].follow(None).await;
    let peers =
        [Peer::open(Era::Legacy, one, &path).await, Peer::open(Era::Modern, two, &path).await];
    let hearings = [peers[0].hear().await, peers[1].hear().await];
    assert_eq!(peers[0].list().await.len(), 5);
    assert_eq!(peers[1].list().await.len(), 5);
    chats[2].put("/tools/shop.order", json!({"enabled": false})).await;
    for hearing in &hearings {
        hearing.until(1).await;
    }
    boards.chats("work")[1].put("/tools/notes.read", json!({"enabled": false})).await;
    for hearing in &hearings {
        hearing.settles(2).await;
    }
    let events = events.settles(3).await;
    let ids: Vec<_> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(events[1].data["removed"], json!(["shop__order"]), "{events:?}");
    // A client that reconnects at another board misses nothing that is known there, or is told to read all again.
    let again = Api::of(three).chat("work").follow(Some("2")).await.settles(1).await;
    assert!(["revision", "reset"].contains(&again[0].name.as_str()), "{again:?}");
    assert_eq!(again[0].id, "3");
}

#[tokio::test]
async fn changes_at_all_boards_at_once_are_all_made() {
    const EACH: u64 = 12;
    let boards = boards().await;
    new_session(&boards.serves[0], "busy").await;
    let mut working = JoinSet::new();
    for (chat, tool) in boards.chats("busy").into_iter().zip(["find", "price", "order"]) {
        working.spawn(async move {
            let mut refused = 0;
            for n in 0..EACH {
                let place = format!("/tools/shop.{tool}");
                let wanted = json!({"enabled": n % 2 == 1});
                loop {
                    let answer = chat.try_put(&place, wanted.clone()).await;
                    if answer.status == StatusCode::OK {
                        break;
                    }
                    assert_eq!(answer.status, StatusCode::CONFLICT, "{:?}", answer.body);
                    refused += 1;
                }
            }
            refused
        });
    }
    let refused: u64 = working.join_all().await.into_iter().sum();
    assert!(refused < EACH, "{refused} changes were refused three times in a row");
    for chat in boards.chats("busy") {
        let view = chat.view().await;
        assert_eq!(view["tools_revision"], 1 + 3 * EACH, "{view:#}");
        assert_eq!(sorted(chat.names().await), sorted(all()));
    }
}

#[tokio::test]
async fn nothing_that_was_acknowledged_is_lost_with_a_board_that_is_killed() {
    let mut boards = boards().await;
    let path = new_session(&boards.serves[0], "kept").await;
    let mut client = Peer::open(Era::Legacy, &boards.serves[0], "/mcp").await;
    let mut own = Peer::open(Era::Legacy, &boards.serves[0], &path).await;
    let chats = boards.chats("kept");
    let mut title = 0;
    while title < 25 {
        title += 1;
        chats[0].patch(json!({"title": format!("{title}")})).await;
        chats[0].put("/tools/shop.find", json!({"enabled": title % 2 == 0})).await;
    }
    chats[0].api.new_chat(json!({"id": "last"})).await;
    boards.serves[0].signal("KILL");
    boards.serves[0].ended().await;
    let view = chats[1].view().await;
    assert_eq!(view["title"], "25");
    assert_eq!(sorted(chats[1].names().await), sorted(without(&["shop__find"])));
    assert_eq!(boards.chats("last")[2].view().await["id"], "last");
    for (peer, expected) in [(&mut client, all()), (&mut own, without(&["shop__find"]))] {
        peer.moved_to(&boards.serves[1]);
        assert_eq!(sorted(peer.list().await), sorted(expected));
        peer.done("notes__read", json!({})).await;
    }
}

#[tokio::test]
async fn a_change_of_a_servers_list_is_one_step_and_does_not_set_boards_against_each_other() {
    let boards = boards().await;
    let path = new_session(&boards.serves[0], "quiet").await;
    let chats = boards.chats("quiet");
    let peer = Peer::open(Era::Modern, &boards.serves[1], &path).await;
    for chat in &chats {
        assert_eq!(chat.revision().await, 1);
    }
    wait_until(PATIENCE, async || (boards.shop.open_streams() >= 3).then_some(())).await;
    boards.shop.set_tools_and_notify(shop_tools().into_iter().chain([Tool::echo("gift")])).await;
    for chat in &chats {
        chat.until_has("shop__gift").await;
    }
    let after = chats[0].revision().await;
    assert!((2..=4).contains(&after), "{after}: at most one step for each board");
    tokio::time::sleep(Duration::from_secs(2)).await;
    for chat in &chats {
        let revision: Value = chat.view().await["tools_revision"].clone();
        assert_eq!(revision, after);
    }
    assert_eq!(peer.list().await.len(), 6);
}

#[tokio::test]
async fn a_server_that_a_session_attaches_is_there_at_every_board() {
    let boards = boards().await;
    let own = server([Tool::echo("draw")]).await;
    new_session(&boards.serves[0], "own").await;
    let chats = boards.chats("own");
    for chat in &chats {
        assert_eq!(chat.names().await.len(), 5);
    }
    let attached = json!({"own_servers": {"mine": {"url": own.url()}}});
    chats[0].patch(attached).await;
    for chat in &chats {
        chat.until_has("mine__draw").await;
        chat.call("mine__draw", json!({})).await;
    }
    chats[2].patch(json!({"own_servers": {"mine": null}})).await;
    for chat in &chats {
        assert_eq!(sorted(chat.names().await), sorted(all()));
    }
}

#[tokio::test]
async fn keys_that_are_added_or_revoked_count_at_every_board_within_seconds() {
    const SECONDS: Duration = Duration::from_secs(3);
    let boards = boards().await;
    let added = |name: &str| {
        let key = boards.homes[0].line(&format!("key add {name} --role admin --json"));
        key.expect(0).json()
    };
    let (boss, guest) = (added("boss"), added("guest"));
    let [boss, key] = [&boss, &guest].map(|key| key["key"].as_str().unwrap());
    let until = async |key: &str, status: StatusCode| {
        for serve in &boards.serves {
            let api = Api::of(serve).with_key(key);
            wait_until(SECONDS, async || {
                (api.send(Method::GET, "/sessions", None).await.status == status).then_some(())
            })
            .await;
        }
    };
    until("sbk_nobody", StatusCode::UNAUTHORIZED).await;
    until(key, StatusCode::OK).await;
    let path = format!("/keys/{}", guest["id"].as_str().unwrap());
    Api::of(&boards.serves[1]).with_key(boss).send(Method::DELETE, &path, None).await;
    until(key, StatusCode::UNAUTHORIZED).await;
    until(boss, StatusCode::OK).await;
}
