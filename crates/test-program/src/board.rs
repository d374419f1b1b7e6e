//! Boards for the program's tests: the market catalogue of 253 tools, and a small board with two servers.

use serde_json::json;
use switchboard_test_support::{ScriptedServer, Tool, market_catalogue, market_toolsets_yaml};

use crate::support::{Home, dynamic, server};

/// Number of meta-tools.
pub const META: usize = 7;
pub const ALL: usize = 253;
/// Number of tools in the toolsets `search`, `company` and `quotes`.
pub const THREE_SETS: usize = 51;
pub const QUOTES: usize = 16;

/// A server, and a home directory whose configuration has it.
#[derive(Debug)]
pub struct Board {
    pub server: ScriptedServer,
    pub home: Home,
}

/// The market catalogue with bare names; `gateway` holds the members of that section.
pub async fn market(gateway: &str) -> Board {
    let server = server(market_catalogue()).await;
    let yaml = format!(
        "switchboard:\n  gateway: {{{}}}\n{}  toolbox:\n    mcps:\n      - {}\n",
        joined("naming: bare", gateway),
        market_toolsets_yaml(),
        dynamic("market", &server.url())
    );
    Board { home: Home::new(yaml), server }
}

fn joined(first: &str, more: &str) -> String {
    if more.is_empty() { first.to_owned() } else { format!("{first}, {more}") }
}

/// The tools of `shop`: two read-only ones and one that writes.
pub fn shop_tools() -> Vec<Tool> {
    let reads = |name: &str| Tool::echo(name).member("annotations", json!({"readOnlyHint": true}));
    vec![reads("find"), reads("price"), Tool::echo("order")]
}

/// Two servers, `shop` and `notes`, and toolsets of which two share `price`.
#[derive(Debug)]
pub struct TwoServers {
    pub shop: ScriptedServer,
    pub notes: ScriptedServer,
    pub home: Home,
}

pub async fn two_servers(gateway: &str) -> TwoServers {
    let shop = server(shop_tools()).await;
    let notes = server([Tool::echo("read"), Tool::echo("write")]).await;
    let home = Home::new(two_servers_yaml(gateway, &shop.url(), &notes.url()));
    TwoServers { shop, notes, home }
}

pub fn two_servers_yaml(gateway: &str, shop: &str, notes: &str) -> String {
    format!(
        "switchboard:\n  gateway: {{{gateway}}}\n  toolsets:\n    \
         - {{name: look, description: Looks, tools: [find, price]}}\n    \
         - {{name: buy, description: Buys, tools: [order, price]}}\n  \
         toolbox:\n    mcps:\n      - {}\n      - {}\n",
        dynamic("shop", shop),
        dynamic("notes", notes)
    )
}

pub const SHOP: [&str; 3] = ["shop__find", "shop__price", "shop__order"];
pub const NOTES: [&str; 2] = ["notes__read", "notes__write"];

pub const META_NAMES: [&str; META] = [
    "enable_toolset",
    "disable_toolset",
    "list_toolsets",
    "describe_toolset",
    "search_tools",
    "describe_tool",
    "call_tool",
];

/// The meta-tools followed by these tools.
pub fn meta_and(tools: &[&'static str]) -> Vec<&'static str> {
    META_NAMES.iter().chain(tools).copied().collect()
}
