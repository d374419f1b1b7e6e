//! `connect`: printed and written entries, and files that are not changed.

use std::os::unix::fs::{PermissionsExt, symlink};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::Home;

const CLIENTS: [(&str, &str); 7] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("claude-code", ".mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("gemini-cli", ".gemini/settings.json"),
];

fn home() -> Home {
    Home::new("switchboard:\n")
}

fn read(home: &Home, file: &str) -> String {
    std::fs::read_to_string(home.path().join(file)).unwrap()
}

#[test]
fn every_client_has_its_file_and_its_words() {
    for (client, file) in CLIENTS {
        let home = home();
        let printed = home.line(&format!("connect {client}")).expect(0);
        assert!(!home.path().join(file).exists(), "nothing is written unasked");
        assert!(printed.stderr.contains(file), "{}", printed.stderr);
        let json = home.line(&format!("connect {client} --json")).expect(0).json();
        assert_eq!(json["text"].as_str(), Some(printed.stdout.as_str()), "{client}");
        assert!(json["file"].as_str().unwrap().ends_with(file));
        assert_eq!((&json["changed"], &json["backup"]), (&json!(false), &Value::Null));

        let written = home.line(&format!("connect {client} --write")).expect(0);
        assert!(written.stdout.ends_with(": `switchboard` written\n"), "{}", written.stdout);
        assert_eq!(read(&home, file), printed.stdout, "{client}");
        let again = home.line(&format!("connect {client} --write")).expect(0);
        assert!(again.stdout.ends_with(": nothing changed\n"), "{}", again.stdout);
        assert!(!home.path().join(format!("{file}.bak")).exists(), "there was nothing to keep");
    }
}

#[test]
fn a_program_is_named_with_its_whole_path_and_the_configuration_in_use() {
    let home = Home::empty();
    home.file("other.yaml", "switchboard:\n");
    let config = home.path().canonicalize().unwrap().join("other.yaml");
    for client in ["claude-desktop", "claude-code --stdio", "codex --stdio"] {
        let json = home.line(&format!("connect {client} --config other.yaml --json")).expect(0);
        let entry = json.json()["entry"].clone();
        assert_eq!(entry["args"], json!(["--config", config, "stdio"]), "{client}");
        let command = entry["command"].as_str().unwrap();
        assert!(command.starts_with('/') && command.ends_with("/switchboard"), "{command}");
    }
    let none = home.line("connect claude-desktop").expect(1);
    assert!(none.stderr.contains("--config FILE"), "{}", none.stderr);
    let missing = home.line("connect claude-desktop --config nowhere.yaml").expect(1);
    assert!(missing.stderr.contains("nowhere.yaml"), "{}", missing.stderr);
}

#[test]
fn a_program_can_be_the_way_to_a_running_instance() {
    let home = Home::empty();
    for client in ["claude-desktop", "claude-code --stdio", "codex --stdio"] {
        let json = home.line(&format!("connect {client} --url http://127.0.0.1:9000 --json"));
        let entry = json.expect(0).json()["entry"].clone();
        assert_eq!(entry["args"], json!(["--url", "http://127.0.0.1:9000/mcp", "stdio"]));
        let near = home.line(&format!("connect {client} --url http://127.0.0.1:9000")).expect(0);
        assert!(!near.all().contains("SWITCHBOARD_API_KEY"), "{}", near.all());
        let line = format!("connect {client} --url https://gateway.example.com/mcp/toolsets/a");
        let far = home.line(&line).expect(0);
        assert!(
            far.stdout.contains("https://gateway.example.com/mcp/toolsets/a"),
            "{}",
            far.stdout
        );
        // Programs are started with few variables: each client is told to pass this one on, or its user is.
        let told = if client == "claude-desktop" { &far.stderr } else { &far.stdout };
        assert!(told.contains("SWITCHBOARD_API_KEY"), "{client}: {}", far.all());
    }
}

#[test]
fn a_board_of_its_own_keeps_its_data_where_the_command_line_says() {
    let home = home();
    let json = home.line("connect claude-desktop --data-dir elsewhere --json").expect(0).json();
    let (config, data) = (home.config(), home.path().join("elsewhere"));
    let config = config.canonicalize().unwrap();
    let args = json!(["--config", config, "--data-dir", data, "stdio"]);
    assert_eq!(json["entry"]["args"], args);
}

#[test]
fn a_file_keeps_what_is_in_it_and_a_copy_of_what_it_was() {
    let home = home();
    let before =
        "{\n\t\"other\": [1, 2],\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"y\"}\n\t}\n}\n";
    let file = home.file("mcp.json", before);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, home.path().join("link.json")).unwrap();
    let json = home.line("connect cursor --write --file link.json --json").expect(0).json();
    assert_eq!((&json["changed"], &json["backup"]), (&json!(true), &json!("link.json.bak")));
    assert_eq!(
        read(&home, "mcp.json"),
        "{\n\t\"other\": [1, 2],\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"y\"},\n\t\t\"switchboard\": {\n\t\t\t\"url\": \"http://127.0.0.1:8420/mcp\"\n\t\t}\n\t}\n}\n"
    );
    assert_eq!(read(&home, "link.json.bak"), before);
    let mode = |name: &str| home.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("mcp.json"), mode("link.json.bak")), (0o640, 0o600));
    assert!(home.path().join("link.json").is_symlink(), "a link is written through");
    assert!(!home.path().join("mcp.json.new").exists());
}

#[test]
fn another_entry_is_replaced_only_by_force() {
    let home = home();
    home.line("connect codex --write").expect(0);
    let before = read(&home, ".codex/config.toml");
    let refused = home.line("connect codex --write --url http://127.0.0.1:9000").expect(1);
    assert!(refused.stderr.contains("has another entry `switchboard` already"), "{refused:?}");
    assert!(refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(read(&home, ".codex/config.toml"), before);
    home.line("connect codex --write --url http://127.0.0.1:9000 --name second").expect(0);
    home.line("connect codex --write --url http://127.0.0.1:9000 --force").expect(0);
    assert_eq!(
        read(&home, ".codex/config.toml"),
        "[mcp_servers.switchboard]\nurl = \"http://127.0.0.1:9000/mcp\"\n\n[mcp_servers.second]\nurl = \"http://127.0.0.1:9000/mcp\"\n"
    );
}

#[test]
fn a_file_that_cannot_be_kept_is_left_alone() {
    let rows = [
        ("cursor", "{", "is not valid JSON"),
        ("cursor", "[]", "has no object at the top"),
        ("codex", "a = = 1", "is not valid TOML"),
    ];
    for (client, text, why) in rows {
        let home = home();
        home.file("theirs", text);
        for force in ["", "--force"] {
            let line = format!("connect {client} --write --file theirs {force}");
            let refused = home.line(&line).expect(1);
            assert!(refused.stderr.contains(why), "{}", refused.stderr);
            let json = home.line(&format!("{line} --json")).expect(1).json();
            assert!(json["error"]["message"].as_str().unwrap().contains(why), "{json}");
        }
        assert_eq!(read(&home, "theirs"), text);
        assert!(!home.path().join("theirs.bak").exists());
    }
    let home = home();
    std::fs::create_dir(home.path().join("directory")).unwrap();
    home.line("connect cursor --write --file directory").expect(1);
    let nowhere = home.line("connect cursor --write --file no/such/place.json").expect(1);
    assert!(nowhere.stderr.contains("cannot write no/such/place.json"), "{}", nowhere.stderr);
}

#[test]
fn what_is_no_file_is_neither_read_nor_replaced() {
    let home = home();
    let made = std::process::Command::new("mkfifo").arg(home.path().join("pipe")).status();
    assert!(made.unwrap().success());
    std::fs::create_dir(home.path().join("directory")).unwrap();
    symlink(home.path().join("nowhere"), home.path().join("link")).unwrap();
    for (file, why) in [
        ("pipe", "it is not a file"),
        ("directory", "it is a directory"),
        ("link", "it is a dangling link"),
    ] {
        let refused = home.line(&format!("connect cursor --write --file {file}")).expect(1);
        assert!(
            refused.stderr.contains(&format!("cannot write {file}: {why}")),
            "{}",
            refused.stderr
        );
    }
    assert!(home.path().join("link").is_symlink());
}

#[test]
fn a_key_is_a_reference_and_never_a_value() {
    let home = home().with_variable("SWITCHBOARD_API_KEY", "hunter2");
    for (client, _) in &CLIENTS[1..] {
        let far =
            home.line(&format!("connect {client} --url https://gateway.example.com")).expect(0);
        assert!(far.all().contains("API") && !far.all().contains("hunter2"), "{}", far.all());
        let asked = home.line(&format!("connect {client} --api-key")).expect(0);
        assert_eq!(
            asked.stdout.replace("http://127.0.0.1:8420", "https://gateway.example.com"),
            far.stdout
        );
        let near = home.line(&format!("connect {client}")).expect(0);
        assert!(!near.all().contains("API"), "{}", near.all());
    }
    let leaky = home.line("connect cursor --url https://me:hunter2@gateway.example.com").expect(2);
    assert!(!leaky.all().contains("hunter2"), "{}", leaky.all());
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    let home = home();
    for line in [
        "connect",
        "connect emacs",
        "connect cursor --force",
        "connect cursor --name a.b",
        "connect cursor --url nowhere",
        "connect cursor --stdio --api-key",
        "connect claude-desktop --url nowhere",
        "connect claude-desktop --api-key",
    ] {
        home.line(line).expect(2);
    }
}

#[test]
fn the_variable_for_every_command_names_the_instance_and_a_configuration_goes_before_it() {
    let home = home().with_variable("SWITCHBOARD_URL", "localhost:9000");
    for client in ["cursor", "claude-desktop", "cursor --stdio", "codex --stdio"] {
        let of_variable = home.line(&format!("connect {client}")).expect(0).stdout;
        assert!(of_variable.contains("http://localhost:9000/mcp"), "{client}: {of_variable}");
    }
    for client in ["claude-desktop", "codex --stdio"] {
        let line = format!("connect {client} --config switchboard.yaml");
        let own = home.line(&line).expect(0).stdout;
        assert!(own.contains("--config") && !own.contains("9000"), "{client}: {own}");
    }
    let refused = home.line("connect cursor --write --move --file mcp.json").expect(2);
    assert!(refused.stderr.contains("--config FILE"), "{}", refused.stderr);
}

#[test]
fn other_servers_are_named_and_taken_over_on_demand() {
    let home = Home::new(
        "switchboard:\n  toolbox:\n    mcps:\n      - {name: same, command: s, mode: strict, required: false}\n",
    );
    let theirs = json!({"theme": "dark", "mcpServers": {
        "files": {"command": "files-server"},
        "same": {"command": "other"},
        "off": {"command": "x", "disabled": true},
    }});
    home.file("mcp.json", serde_json::to_string_pretty(&theirs).unwrap());
    let written = home.line("connect cursor --write --file mcp.json").expect(0);
    assert!(written.stderr.contains("Cursor also has files, same."), "{}", written.stderr);
    assert!(!read(&home, "switchboard.yaml").contains("files-server"));

    let moved = home.line("connect cursor --write --move --file mcp.json --json").expect(0).json();
    assert_eq!((&moved["changed"], &moved["moved"][1]), (&json!(true), &json!(["files"])));
    let notes = moved["notes"].to_string();
    assert!(
        notes.contains("same: stays in mcp.json: switchboard.yaml has another server `same`"),
        "{notes}"
    );
    assert!(notes.contains("off: stays in mcp.json: it is disabled there"), "{notes}");
    assert!(!notes.contains("left out"), "{notes}");
    let left: Value = serde_json::from_str(&read(&home, "mcp.json")).unwrap();
    let names: Vec<_> = left["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["same", "off", "switchboard"]);
    assert_eq!(left["theme"], "dark");
    let config = read(&home, "switchboard.yaml");
    assert!(config.contains("name: files\n"), "{config}");
    home.line("check").expect(0);
    assert!(!read(&home, "switchboard.yaml.bak").contains("files"));

    let again = home.line("connect cursor --write --move --file mcp.json").expect(0);
    assert!(again.stdout.contains("nothing changed"), "{}", again.all());
    let nowhere =
        "connect cursor --write --move --file mcp.json --url http://127.0.0.1:9000 --force";
    let refused = home.line(nowhere).expect(2);
    assert!(refused.stderr.contains("--config FILE"), "{}", refused.stderr);
}

#[test]
fn servers_of_projects_are_taken_over_too_and_the_notes_tell_one_story() {
    let home = Home::new(
        "switchboard:\n  toolbox:\n    mcps:\n      - {name: mine, command: m, mode: strict, required: false}\n",
    );
    let theirs = json!({"theme": "dark",
    "mcpServers": {
        "mine": {"command": "m"},
        "board": {"url": "http://localhost:8420/mcp/toolsets/a"},
    },
    "projects": {
        "/work/a": {"mcpServers": {"db": {"command": "d"}}, "history": [1]},
        "/work/b": {"mcpServers": {"db": {"type": "stdio", "command": "d", "args": []}}},
    }});
    home.file(".claude.json", serde_json::to_string_pretty(&theirs).unwrap());
    let line = "connect claude-code --write --file .claude.json";
    let written = home.line(line).expect(0);
    assert!(
        written.stderr.contains("Claude Code also has mine, db (project /work/a)."),
        "{}",
        written.stderr
    );
    let moved = home.line(&format!("{line} --move")).expect(0);
    let notes: Vec<_> =
        moved.stderr.lines().filter(|line| !line.starts_with("note: programs ")).collect();
    assert_eq!(
        notes,
        [
            "note: board: stays in .claude.json: it is a Switchboard itself",
            "note: db (project /work/a): imported for all clients; in the other file it is for this project only",
            "note: mine: removed from .claude.json, because switchboard.yaml has it already",
        ]
    );
    assert!(moved.stdout.contains("switchboard.yaml: took over db\n"), "{}", moved.stdout);
    let left: Value = serde_json::from_str(&read(&home, ".claude.json")).unwrap();
    let names: Vec<_> = left["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["board", "switchboard"]);
    let projects =
        json!({"/work/a": {"mcpServers": {}, "history": [1]}, "/work/b": {"mcpServers": {}}});
    assert_eq!(left["projects"], projects);
    let again = home.line(&format!("{line} --move")).expect(0);
    assert!(again.stdout.contains("nothing changed"), "{}", again.all());
}
