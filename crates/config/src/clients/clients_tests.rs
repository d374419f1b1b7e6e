use pretty_assertions::assert_eq;

use super::*;

fn here(client: ClientProgram) -> ClientEntry {
    let url = mcp_address(None).unwrap();
    ClientEntry::new(client, "switchboard", Reach::Http { url, key: KeyUse::None })
}

fn far(client: ClientProgram) -> ClientEntry {
    let url = mcp_address(Some("https://gateway.example.com")).unwrap();
    ClientEntry::new(client, "switchboard", Reach::Http { url, key: KeyUse::FromVariable })
}

fn program(client: ClientProgram) -> ClientEntry {
    let args = ["--config", "/etc/switchboard.yaml", "stdio"].map(str::to_owned).to_vec();
    let reach = Reach::Stdio { command: "/usr/bin/switchboard".into(), args, key: KeyUse::None };
    ClientEntry::new(client, "switchboard", reach)
}

/// A stdio entry that forwards to an instance elsewhere.
fn bridge(client: ClientProgram) -> ClientEntry {
    let args = ["--url", "https://gateway.example.com/mcp", "stdio"].map(str::to_owned).to_vec();
    let command = "/usr/bin/switchboard".into();
    let reach = Reach::Stdio { command, args, key: KeyUse::FromVariable };
    ClientEntry::new(client, "switchboard", reach)
}

fn laid(entry: &ClientEntry, text: &str) -> String {
    match entry.lay_into(text, SameName::Refuse).unwrap() {
        Laid::Changed(text) => text,
        Laid::Unchanged => panic!("nothing changed"),
    }
}

#[test]
fn every_client_in_its_own_words() {
    let mut all = Vec::new();
    for client in ClientProgram::ALL {
        let forms = [
            ("here", here(client)),
            ("far", far(client)),
            ("program", program(client)),
            ("bridge", bridge(client)),
        ];
        for (form, entry) in forms {
            if matches!(form, "program" | "bridge") || client.speaks_http() {
                all.push(format!("== {}, {form}\n{}", client.title(), entry.file_text()));
            }
        }
    }
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("every_client", all.join("\n"));
    });
}

#[test]
fn what_is_written_once_is_not_written_again() {
    for client in ClientProgram::ALL {
        for entry in [here(client), far(client), program(client), bridge(client)] {
            let text = entry.file_text();
            assert_eq!(entry.lay_into(&text, SameName::Refuse), Ok(Laid::Unchanged), "{text}");
            for empty in ["", " \n\t"] {
                assert_eq!(laid(&entry, empty), text);
            }
        }
    }
}

#[test]
fn no_form_holds_the_value_of_a_key() {
    for client in ClientProgram::ALL {
        let text = far(client).file_text();
        let shows_variable = text.contains(API_KEY_VARIABLE) || text.contains(KEY_INPUT);
        assert!(shows_variable, "{text}");
    }
}

#[test]
fn json_keeps_everything_else_with_its_comments() {
    let texts = [
        // Four spaces, irregular spacing, a duplicate key, a number that no float can hold, an escape.
        "{\n    \"z\": 1.0000000000000000000001,\"z\" : \"\\u00e9\",\n    \"servers\" : { \"other\":{\"command\":\"x\"} },\n    \"a\": [1,\n2]\n}\n",
        "{\n  // mine\n  \"servers\": {} // none yet\n}\n",
        "{\n  \"servers\": {\n    \"x\": {}, // with a trailing comma\n    // the end\n  },\n}\n",
        "{\r\n\t/* a */\r\n\t\"servers\": {\r\n\t\t\"x\": {} // last\r\n\t}\r\n}",
        "// only a comment\n",
    ];
    let edited = texts.map(|text| laid(&here(ClientProgram::VsCode), text).replace('\r', "<CR>"));
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("edited_json", edited.join("\n----\n"));
    });
}

#[test]
fn json_gets_the_list_that_it_lacks() {
    let entry = here(ClientProgram::Gemini);
    let inner = "\"switchboard\": {\n      \"httpUrl\": \"http://127.0.0.1:8420/mcp\"\n    }";
    assert_eq!(laid(&entry, "{}"), format!("{{\n  \"mcpServers\": {{\n    {inner}\n  }}\n}}"));
    assert_eq!(
        laid(&entry, "{\n  \"theme\": \"dark\"\n}\n"),
        format!("{{\n  \"theme\": \"dark\",\n  \"mcpServers\": {{\n    {inner}\n  }}\n}}\n")
    );
    assert_eq!(
        laid(&entry, "\u{feff}{\"mcpServers\":{ }}"),
        format!("\u{feff}{{\"mcpServers\":{{\n    {inner}\n  }}}}")
    );
}

#[test]
fn vs_code_asks_for_a_key_once() {
    let entry = far(ClientProgram::VsCode);
    let before =
        r#"{"inputs": [{"id": "other", "type": "promptString"}], "servers": {"x": {"url": "u"}}}"#;
    let after = laid(&entry, before);
    let json: Json = serde_json::from_str(&after).unwrap();
    assert_eq!(json["inputs"].as_array().unwrap().len(), 2);
    assert_eq!(json["inputs"][1]["id"], KEY_INPUT);
    assert_eq!(json["servers"]["switchboard"], entry.to_json());
    assert_eq!(json["servers"]["x"]["url"], "u");
    assert_eq!(entry.lay_into(&after, SameName::Refuse), Ok(Laid::Unchanged));
    let other = ClientEntry { name: "second".into(), ..entry };
    let json: Json = serde_json::from_str(&laid(&other, &after)).unwrap();
    assert_eq!(json["inputs"].as_array().unwrap().len(), 2);
}

#[test]
fn toml_keeps_comments_and_order() {
    let before = "# mine\nmodel = \"x\"  # best\n\n[mcp_servers.other] # theirs\ncommand = 'y'\n\n[profiles.a]\nb = 1\n";
    let after = laid(&here(ClientProgram::Codex), before);
    let added = "\n[mcp_servers.switchboard]\nurl = \"http://127.0.0.1:8420/mcp\"\n";
    assert_eq!(after.replace(added, ""), before, "{after}");
    assert!(after.contains(added), "{after}");
    assert_eq!(laid(&here(ClientProgram::Codex), "a = 1\n"), format!("a = 1\n{added}"));
    let inline = laid(&here(ClientProgram::Codex), "mcp_servers = { x = { command = \"y\" } }\n");
    let expected = "mcp_servers = { x = { command = \"y\" } , switchboard = { url = \"http://127.0.0.1:8420/mcp\" }}\n";
    assert_eq!(inline.replace(' ', ""), expected.replace(' ', ""));
}

#[test]
fn another_entry_of_that_name_is_replaced_only_on_demand() {
    let rows = [
        (
            ClientProgram::Cursor,
            "{\"mcpServers\": {\"switchboard\": {\"url\": \"http://old\"}, \"x\": {}}}",
            "{\"mcpServers\": {\"switchboard\": {\n      \"url\": \"http://127.0.0.1:8420/mcp\"\n    }, \"x\": {}}}",
        ),
        (
            ClientProgram::Codex,
            "# a\n[mcp_servers.switchboard]\nurl = \"http://old\"\nenabled = true\n\n[x]\ny = 1\n",
            "# a\n[mcp_servers.switchboard]\nurl = \"http://127.0.0.1:8420/mcp\"\n\n[x]\ny = 1\n",
        ),
        (
            ClientProgram::Codex,
            "[mcp_servers.a]\nb = 1\n\n[x]\ny = 1\n\n# ours\n[mcp_servers.switchboard]\nurl = \"u\"\n",
            "[mcp_servers.a]\nb = 1\n\n[x]\ny = 1\n\n# ours\n[mcp_servers.switchboard]\nurl = \"http://127.0.0.1:8420/mcp\"\n",
        ),
        (
            ClientProgram::Codex,
            "mcp_servers.switchboard = { url = \"http://old\" }\n",
            "mcp_servers.switchboard = { url = \"http://127.0.0.1:8420/mcp\" }\n",
        ),
    ];
    for (client, before, after) in rows {
        let entry = here(client);
        let taken = Unwritable::NameTaken { name: "switchboard".into() };
        assert_eq!(entry.lay_into(before, SameName::Refuse), Err(taken));
        let replaced = entry.lay_into(before, SameName::Replace);
        assert_eq!(replaced, Ok(Laid::Changed(after.into())));
        assert_eq!(entry.lay_into(after, SameName::Refuse), Ok(Laid::Unchanged));
    }
}

#[test]
fn what_cannot_be_kept_is_left_alone() {
    let check = |client, text: &str, expected: &str| {
        for same_name in [SameName::Refuse, SameName::Replace] {
            let why = here(client).lay_into(text, same_name).unwrap_err();
            assert_eq!(why.to_string(), expected, "{text}");
            assert!(!why.hint().is_empty());
        }
    };
    check(
        ClientProgram::Cursor,
        "{\"a\": ",
        "is not valid JSON: expected value after colon in object property at line 1 column 7",
    );
    check(ClientProgram::Cursor, "a = 1", "is not valid JSON: unexpected word at line 1 column 1");
    check(ClientProgram::Cursor, "[]", "has no object at the top");
    check(ClientProgram::Cursor, "{\"mcpServers\": []}", "has no object at mcpServers");
    check(
        ClientProgram::Codex,
        "a = 1\nb = = 2",
        "is not valid TOML: extra `=`, expected nothing at line 2",
    );
    check(ClientProgram::Codex, "mcp_servers = 1", "has no table at mcp_servers");
    check(ClientProgram::Codex, "[[mcp_servers]]\nx = 1", "has no table at mcp_servers");
    let why =
        far(ClientProgram::VsCode).lay_into("{\"inputs\": {}}", SameName::Refuse).unwrap_err();
    assert_eq!(why.to_string(), "has no list at inputs");
}

#[test]
fn addresses_are_those_of_the_endpoint() {
    let rows = [
        (None, Some("http://127.0.0.1:8420/mcp")),
        (Some("http://127.0.0.1:9000"), Some("http://127.0.0.1:9000/mcp")),
        (Some("http://127.0.0.1:9000/"), Some("http://127.0.0.1:9000/mcp")),
        (Some("https://h/mcp/toolsets/a,b"), Some("https://h/mcp/toolsets/a,b")),
        (Some("https://h?toolsets=a"), Some("https://h/mcp?toolsets=a")),
        (Some("127.0.0.1:9000"), Some("http://127.0.0.1:9000/mcp")),
        (Some("localhost:9000/mcp/toolsets/a"), Some("http://localhost:9000/mcp/toolsets/a")),
        (Some("[::1]:9000?toolsets=a"), Some("http://[::1]:9000/mcp?toolsets=a")),
        (Some("localhost"), None),
        (Some("mailto:me"), None),
        (Some(":9000"), None),
        (Some("ftp://h"), None),
        (Some("https://me:pw@h"), None),
        (Some(""), None),
    ];
    for (given, expected) in rows {
        assert_eq!(mcp_address(given).ok().as_ref().map(Url::as_str), expected, "{given:?}");
    }
    assert!(!mcp_address(Some("https://me:hunter2@h")).unwrap_err().contains("hunter2"));
    let needs = |text| needs_key(&mcp_address(Some(text)).unwrap());
    assert!(needs("https://gateway.example.com") && !needs("http://localhost:1"));
}

proptest::proptest! {
    /// For any file: the entry is added and all other members stay unchanged.
    #[test]
    fn any_object_keeps_its_members(keys in proptest::collection::vec("[a-z\"\\\\ é]{0,4}", 0..5), compact: bool) {
        let mut whole = json!({"mcpServers": {}});
        for key in &keys {
            whole[key] = json!([key, {"k": null}]);
            whole["mcpServers"][key] = json!({"command": key});
        }
        let text = if compact { whole.to_string() } else { format!("{whole:#}") };
        let entry = here(ClientProgram::ClaudeCode);
        let after: Json = serde_json::from_str(&laid(&entry, &text)).unwrap();
        whole["mcpServers"]["switchboard"] = entry.to_json();
        proptest::prop_assert_eq!(after, whole);
    }
}

#[test]
fn servers_leave_a_file_and_everything_else_stays() {
    fn without(
        client: ClientProgram,
        text: &str,
        list: &[&str],
        names: &[&str],
    ) -> Result<String, Unwritable> {
        let list = list.iter().map(|key| (*key).to_owned()).collect();
        client.without_servers(text, &BTreeMap::from([(list, names.to_vec())]))
    }
    #[track_caller]
    fn check(client: ClientProgram, text: &str, list: &[&str], names: &[&str], expected: &str) {
        assert_eq!(without(client, text, list, names).unwrap(), expected);
    }
    let list = &["mcpServers"];
    let text = "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"},\n    \"y\": {\n      \"url\":   \"u\"\n    },\n    \"z\": {}\n  },\n  \"b\":  2\n}\n";
    check(
        ClientProgram::Cursor,
        text,
        list,
        &["x", "z"],
        "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"y\": {\n      \"url\":   \"u\"\n    }\n  },\n  \"b\":  2\n}\n",
    );
    check(
        ClientProgram::Cursor,
        text,
        list,
        &["x", "y", "z"],
        "{\n  \"a\": 1,\n  \"mcpServers\": {},\n  \"b\":  2\n}\n",
    );
    check(ClientProgram::Cursor, text, list, &["none"], text);
    check(ClientProgram::Cursor, "", list, &["x"], "");
    check(ClientProgram::VsCode, text, &["servers"], &["x"], text);
    let projects = "{\n  \"projects\": {\n    \"/a\": {\n      \"mcpServers\": {\n        \"x\": {}, \"y\": {}\n      },\n      \"b\":  2\n    }\n  }\n}\n";
    check(
        ClientProgram::ClaudeCode,
        projects,
        &["projects", "/a", "mcpServers"],
        &["x"],
        "{\n  \"projects\": {\n    \"/a\": {\n      \"mcpServers\": {\n \"y\": {}\n      },\n      \"b\":  2\n    }\n  }\n}\n",
    );
    check(ClientProgram::ClaudeCode, projects, &["projects", "/b", "mcpServers"], &["x"], projects);
    let toml = "# mine\nmodel = \"m\"\n\n[mcp_servers.x]\ncommand = \"x\"\n\n# of y\n[mcp_servers.y]\nurl = \"u\"\n";
    check(
        ClientProgram::Codex,
        toml,
        &["mcp_servers"],
        &["x"],
        "# mine\nmodel = \"m\"\n\n# of y\n[mcp_servers.y]\nurl = \"u\"\n",
    );
    check(ClientProgram::Codex, toml, &["elsewhere"], &["x"], toml);
    check(
        ClientProgram::Cursor,
        "{\n  // mine\n  \"mcpServers\": {\n    // of x\n    \"x\": {},\n    // of y\n    \"y\": {}, // theirs\n  }, // c\n}",
        list,
        &["x"],
        "{\n  // mine\n  \"mcpServers\": {\n    // of x\n    // of y\n    \"y\": {}, // theirs\n  }, // c\n}",
    );
}
