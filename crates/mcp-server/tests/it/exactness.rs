//! Results of servers reach clients byte for byte.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_test_support::{Reply, ScriptedServer, ScriptedServerBuilder, Tool};

use crate::support::World;

/// Unknown members, and numbers, white space and escapes that a reserialisation would change.
const ODD: &str =
    r#" "later" : [ -0.0, 1E+2, 12345678901234567890123, "\u00e9\/" ],  "b":3.0,"a" : null }"#;

/// The same behind a long text, which takes another code path, and a number that most parsers cannot represent.
fn results(members: &str) -> [String; 2] {
    let long = "x".repeat(40_000);
    [format!("{{{members},{ODD}"), format!(r#"{{{members},"long":"{long}","huge":1e400,{ODD}"#)]
}

/// The text after the first brace.
fn members_of(result: &str) -> &str {
    result.strip_prefix('{').unwrap()
}

async fn check(builder: ScriptedServerBuilder, method: &'static str, params: Value, result: &str) {
    let builder = builder.tools([Tool::new("t")]).prompts(["p"]).resources(["one://r"]);
    let server: ScriptedServer = builder.answers_exactly(method, result).start().await;
    let world = World::of(&[("one", &server)]).await;
    let session = world.open(json!({})).await;
    let legacy = session.ask(method, params.clone()).await.text().await;
    assert!(legacy.ends_with(&format!("\"result\":{result}}}")), "{method}: {legacy}");
    // The additional members of the stateless era are written first.
    let modern = world.modern(method, params, json!({})).await.text().await;
    assert!(modern.ends_with(&format!("{}}}", members_of(result))), "{method}: {modern}");
    let modern: &str = modern.split_once("\"result\":").unwrap().1;
    assert!(modern.contains(r#""resultType":"complete""#), "{method}: {modern}");
}

#[tokio::test]
async fn results_pass_byte_for_byte_whatever_era_they_come_from_and_go_to() {
    let call = json!({"name": "one__t", "arguments": {}});
    let (prompt, resource) = (json!({"name": "one__p"}), json!({"uri": "one://r"}));
    for (method, params, members) in [
        ("tools/call", call, r#" "content" : [ {"type":"hologram","beams":3.0} ]"#),
        ("prompts/get", prompt, r#" "messages" : [ ]"#),
        ("resources/read", resource, r#" "contents" : [ ]"#),
    ] {
        for result in results(members) {
            let typed = format!(r#"{{"resultType":"complete",{}"#, members_of(&result));
            check(ScriptedServer::builder().legacy(), method, params.clone(), &result).await;
            check(ScriptedServer::builder().modern(), method, params.clone(), &typed).await;
        }
    }
}

#[tokio::test]
async fn a_structure_that_is_no_object_is_taken_out_for_older_clients_and_for_nobody_else() {
    for (structure, is_for_all) in
        [(json!({"a": 1}), true), (json!([1]), false), (json!(7), false), (Value::Null, false)]
    {
        let result = json!({"content": [], "structuredContent": structure, "x": 1.5});
        let odd = Tool::new("odd").replies(Reply::Result(result.clone()));
        let server = ScriptedServer::builder().legacy().tools([odd]).start().await;
        let world = World::of(&[("one", &server)]).await;
        let mut expected = result.clone();
        if !is_for_all {
            expected.as_object_mut().unwrap().remove("structuredContent");
        }
        let session = world.open(json!({})).await;
        assert_eq!(session.call("one__odd").await.result().await, expected);
        let call = json!({"name": "one__odd", "arguments": {}});
        let modern = world.modern("tools/call", call, json!({})).await.result().await;
        assert_eq!(modern["structuredContent"], structure, "{modern}");
    }
}
