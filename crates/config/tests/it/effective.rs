//! The output of `config show`.

use std::path::Path;

use pretty_assertions::assert_eq;
use switchboard_config::{SourceLocation, json_schema};
use switchboard_model::Endpoint;

use crate::support::{EVERYTHING, EVERYTHING_ENV, load_text, load_with};

#[test]
fn every_value_has_its_origin() {
    let env =
        [EVERYTHING_ENV.as_slice(), &[("SWITCHBOARD__TOOLBOX__MAX_CONCURRENT", "9")]].concat();
    let loaded = load_with(Some(EVERYTHING), &env).unwrap();
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!("everything", loaded.to_yaml());
    });
    let settings = loaded.settings();
    let origin = |path: &str| {
        let setting = settings.iter().find(|setting| setting.path == path);
        setting.unwrap_or_else(|| panic!("{path}")).origin.clone()
    };
    let variable = "SWITCHBOARD__TOOLBOX__MAX_CONCURRENT".to_owned();
    assert_eq!(
        origin("switchboard.toolbox.max_concurrent"),
        SourceLocation::Environment { variable }
    );
    assert_eq!(origin("switchboard.toolbox.mcps[1].required"), SourceLocation::Default);
    assert_eq!(
        origin("switchboard.toolbox.mcps[0].auth.bearer").to_string(),
        "switchboard.yaml:31:19"
    );
    let json = loaded.to_json();
    assert_eq!(json["config"]["switchboard"]["toolbox"]["max_concurrent"], 9);
    assert_eq!(json["settings"].as_array().unwrap().len(), settings.len());
}

#[test]
fn what_is_shown_loads_again_and_shows_the_same() {
    let texts = [
        include_str!("../fixtures/structure.yaml"),
        include_str!("../fixtures/mixed.yaml"),
        "switchboard:\n",
        "switchboard:\n  toolbox:\n    local_tools: all\n    tools:\n    - name: \"7\"\n      description: 'a: $${b} # c'\n",
    ];
    for text in texts {
        let first = load_text(text).unwrap();
        let second = load_text(&first.to_yaml()).unwrap();
        let values = |loaded: &switchboard_config::Loaded| {
            loaded.settings().into_iter().map(|s| (s.path, s.value)).collect::<Vec<_>>()
        };
        assert_eq!(values(&first), values(&second));
        assert_eq!(first.plan.tools, second.plan.tools);
    }
}

#[test]
fn a_child_starts_relative_to_the_file() {
    let loaded = load_with(Some(EVERYTHING), &EVERYTHING_ENV).unwrap();
    let Endpoint::Stdio { cwd, args, .. } = &loaded.plan.servers[2].spec.endpoint else { panic!() };
    assert_eq!(cwd.as_deref(), Some(Path::new("/etc/switchboard/./work")));
    assert_eq!(args, &["-y", "server", "/srv/w0rk"]);
    assert_eq!(loaded.plan.tools[1].description.as_deref(), Some("Reads a file; costs ${5}"));
}

#[test]
fn the_published_schema_accepts_what_loads() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let root = serde_json::json!({"toolbox": {"mcps": [{"name": "a", "url": "http://h", "mode": "strict"}]}});
    assert!(validator.is_valid(&serde_json::json!({"switchboard": root})));
    assert!(validator.is_valid(&serde_json::json!({"myai": root})));
    assert!(!validator.is_valid(&serde_json::json!({"myai": root, "switchboard": root})));
    assert!(!validator.is_valid(&serde_json::json!({})));
    insta::assert_json_snapshot!("schema", json_schema());
}
