#![expect(clippy::needless_pass_by_value, reason = "rows of tables are easier to read without `&`")]

use pretty_assertions::assert_eq;

use super::*;

fn entry(json: Value) -> WrittenFields {
    json.as_object().cloned().unwrap()
}

fn edited(servers: &[Value], key: &str, value: &Value) -> Result<(Value, bool), String> {
    let servers: Vec<_> = servers.iter().cloned().map(entry).collect();
    let servers: Vec<_> = servers.iter().collect();
    let put = put_server(&servers, key, &value.to_string()).map_err(|error| error.message)?;
    let ConfigEdit::Patch { list: EntryList::Servers, name, fields } = put.edit else {
        panic!("{:?}", put.edit)
    };
    assert_eq!(name, key);
    Ok((fields.into(), put.new_address.is_some()))
}

#[track_caller]
fn check(servers: &[Value], value: Value, fields: Value, is_new_address: bool) {
    assert_eq!(edited(servers, "bank", &value), Ok((fields, is_new_address)));
}

#[track_caller]
fn check_refused(servers: &[Value], value: Value, expected: &str) {
    assert_eq!(edited(servers, "bank", &value), Err(expected.to_owned()));
}

const URL: &str = "https://bank.example/mcp";

fn present() -> Value {
    json!({"name": "bank", "url": URL, "mode": "dynamic", "default_tool_config": {}, "tool_allowlist": ["balance"],
           "auth": {"bearer": "${TOKEN}"}})
}

#[test]
fn a_new_server_offers_one_tool() {
    let base = json!({"url": URL, "tool_allowlist": ["balance"], "mode": "dynamic", "default_tool_config": {}, "required": false});
    check(&[], json!({"remote-name": "balance", "url": URL}), base.clone(), true);
    let mut own_name = base.clone();
    own_name["tool_allowlist"] = json!(["bank"]);
    check(&[], json!({"url": URL}), own_name, true);
    let mut with_token = base;
    with_token["auth"] = json!({"bearer": "s3cret$${x}"});
    let value = json!({"remote-name": "balance", "url": URL, "auth-token": "s3cret${x}"});
    check(&[], value, with_token, true);
}

#[test]
fn a_token_is_never_shown() {
    let shown = shown_servers([&entry(present())]);
    assert_eq!(
        Value::from(shown[0].value.clone()),
        json!({"remote-name": "balance", "url": URL, "auth-token": "***"})
    );
    let with_credentials =
        json!({"name": "a", "url": "https://me:pw@a.example/", "tool_allowlist": ["t"]});
    let shown = shown_servers([&entry(with_credentials)]);
    assert_eq!(shown[0].value["url"], "https://***@a.example/");
}

#[test]
fn only_a_server_with_one_tool_is_shown() {
    for other in [
        json!({"name": "a", "url": URL}),
        json!({"name": "a", "url": URL, "tool_allowlist": ["a", "b"]}),
        json!({"name": "a", "url": URL, "tool_allowlist": ["get_*"]}),
        json!({"name": "a", "command": "npx", "tool_allowlist": ["a"]}),
    ] {
        assert_eq!(shown_servers([&entry(other)]), []);
    }
}

#[test]
fn a_change_touches_only_what_differs() {
    let servers = [present()];
    let same = json!({"remote-name": "balance", "url": URL, "auth-token": "***"});
    check(&servers, same, json!({}), false);
    let renamed = json!({"remote-name": "balance2", "url": URL, "auth-token": "***"});
    check(&servers, renamed, json!({"tool_allowlist": ["balance2"]}), false);
    let without = json!({"remote-name": "balance", "url": URL});
    check(&servers, without, json!({"auth": null}), false);
    let moved =
        json!({"remote-name": "balance", "url": "https://other.example", "auth-token": "t"});
    check(&servers, moved, json!({"url": "https://other.example", "auth": {"bearer": "t"}}), true);
}

#[test]
fn credentials_of_the_file_do_not_follow_to_another_address() {
    let refusal = "mcp 'bank' has credentials in the configuration file, which belong to its present address: give the token again, or edit the file";
    let moved =
        json!({"remote-name": "balance", "url": "https://evil.example", "auth-token": "***"});
    check_refused(&[present()], moved.clone(), refusal);
    let mut headers = present();
    headers["headers"] = json!({"x-key": "${KEY}"});
    let moved = json!({"remote-name": "balance", "url": "https://evil.example", "auth-token": "t"});
    check_refused(&[headers], moved, refusal);
    let mut oauth = present();
    oauth["auth"] = json!({"oauth": {}});
    let moved = json!({"remote-name": "balance", "url": "https://evil.example"});
    check_refused(&[oauth], moved, refusal);
}

#[test]
fn a_value_that_cannot_be_used_says_why() {
    check_refused(&[], json!({"remote-name": "a"}), "mcp 'bank' needs a `url`");
    for url in ["ftp://a.example", "bank", "file:///etc/passwd"] {
        check_refused(
            &[],
            json!({"url": url}),
            "`url` of mcp 'bank' must be an http or https address",
        );
    }
    check_refused(
        &[],
        json!({"url": "https://me:pw@a.example"}),
        "`url` of mcp 'bank' has credentials: give them as `auth-token`",
    );
    check_refused(
        &[],
        json!({"url": URL, "remote-name": "get_*"}),
        "`remote-name` of mcp 'bank' must be the name of one tool, without * and ?",
    );
    check_refused(
        &[],
        json!({"url": URL, "auth-token": "file:/etc/passwd"}),
        "`auth-token` of mcp 'bank' must be a token: only the configuration file itself can name files",
    );
    check_refused(
        &[],
        json!({"url": URL, "auth-token": "***"}),
        "`auth-token` of mcp 'bank' holds the mask '***' instead of a token: send the token, or leave `auth-token` out",
    );
    check_refused(
        &[],
        json!({"url": URL, "command": "rm"}),
        "the value of mcp 'bank' has `command`, which has no meaning here; it can have remote-name, url, auth-token",
    );
    let program = json!({"name": "bank", "command": "npx", "mode": "dynamic"});
    check_refused(
        &[program],
        json!({"url": URL}),
        "the configuration file has a server 'bank' that is more than one MCP tool: choose another id, or edit the file",
    );
}
