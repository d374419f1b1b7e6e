//! The configuration as the API shows it.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::api_server::ApiServer;

#[tokio::test]
async fn every_value_has_its_origin_and_secrets_are_hidden() {
    let yaml = "switchboard:\n  toolbox:\n    max_concurrent: 7\n    mcps:\n      - name: away\n        url: http://127.0.0.1:1/\n        \
                mode: strict\n        required: false\n        headers: {X-Team: s3cret}\n";
    let server = ApiServer::start(yaml).await;
    let config = server.api().get("/api/v1/config").await.good();
    let found = |pointer: &str| -> Value {
        let values = config["values"].as_array().unwrap();
        let found = values.iter().find(|value| value["pointer"] == pointer);
        found.cloned().unwrap_or_else(|| panic!("{pointer} is not in {config:#}"))
    };
    let file = server.file().display().to_string();
    assert_eq!(
        found("/switchboard/toolbox/max_concurrent"),
        json!({
            "pointer": "/switchboard/toolbox/max_concurrent",
            "value": 7,
            "secret": false,
            "origin": {"kind": "file", "place": file, "line": 3, "column": 21},
        })
    );
    let secret = found("/switchboard/toolbox/mcps/0/headers/X-Team");
    assert_eq!((&secret["value"], &secret["secret"]), (&json!("***"), &json!(true)));
    assert_eq!(found("/switchboard/gateway/naming")["origin"], json!({"kind": "default"}));
    assert_eq!((&config["revision"], &config["refused"]), (&json!(1), &Value::Null));
    assert_eq!(config["file"], json!(file));
    assert!(!config.to_string().contains("s3cret"));
}
