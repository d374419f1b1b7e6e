//! MCP registry documents in files and behind addresses.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use switchboard_model::{RegistryPlace, Secret, SourceKind};

use crate::support::{Answer, FakeGateway, error, look, names, registry};

fn document(name: &str) -> Value {
    let url = format!("https://{name}.example.com/mcp");
    json!({"name": format!("io.example/{name}"), "remotes": [{"type": "streamable-http", "url": url}]})
}

#[tokio::test]
async fn a_file_with_documents_is_read() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("server.json");
    let kind = || SourceKind::Registry(RegistryPlace::File(path.clone()));
    let status = look(kind()).await;
    let missing = format!("cannot read {}: ", path.display());
    assert!(error(&status).starts_with(&missing), "{}", error(&status));
    std::fs::write(&path, document("weather").to_string()).unwrap();
    let status = look(kind()).await;
    assert_eq!((names(&status), status.is_file), (vec!["io.example/weather"], true));
    std::fs::write(&path, "{}").unwrap();
    assert!(error(&look(kind()).await).contains("expected a server.json document"));
}

#[tokio::test]
async fn the_pages_of_an_address_are_followed_with_its_token() {
    let first = json!({"servers": [document("a")], "metadata": {"nextCursor": "two words"}});
    let fake = FakeGateway::start(Answer::json(first.to_string())).await;
    let last = json!({"servers": [document("b"), {"name": "io.example/npm", "packages": [{}]}]});
    fake.answer_at("/v0/servers?limit=1&cursor=two+words", Answer::json(last.to_string()));
    let url = format!("{}/v0/servers?limit=1", fake.url).parse().unwrap();
    let token = Some(Secret::new("Bearer s3cret"));
    let status = look(SourceKind::Registry(RegistryPlace::Url { url, token })).await;
    assert_eq!((names(&status), error(&status)), (vec!["io.example/a", "io.example/b"], ""));
    assert_eq!(status.unusable[0].name, "io.example/npm");
    let tokens: Vec<_> =
        fake.seen().iter().map(|seen| seen.header("authorization").to_owned()).collect();
    assert_eq!(tokens, ["Bearer s3cret", "Bearer s3cret"]);
    assert!(status.servers.iter().all(|server| server.headers.is_empty()));
    assert_eq!(status.place, format!("{}/v0/servers?limit=***", fake.url));
}

#[tokio::test]
async fn bad_answers_are_named() {
    let other = FakeGateway::start(Answer::json("[]")).await;
    let fake = FakeGateway::start(Answer::json("[]")).await;
    for (answer, expected) in [
        (Answer::Body(401, "text/plain", "who?".into()), "HTTP 401: who?".to_owned()),
        (Answer::Body(500, "text/html", "<b>".into()), "HTTP 500: <b>".to_owned()),
        (Answer::Body(200, "text/html", "<b>".into()), "expected value at line 1".to_owned()),
        (Answer::json(""), "EOF while parsing".to_owned()),
        (Answer::json("{\"mcpServers\": []}"), "expected a server.json document".to_owned()),
        (
            Answer::Redirect(format!("{}/x", other.url)),
            format!("HTTP 302: redirects to {}, and redirects to other hosts", other.url),
        ),
    ] {
        fake.answer(answer);
        let status = look(registry(&fake.url)).await;
        let message = format!("cannot read the MCP registry {}/: {expected}", fake.url);
        assert!(error(&status).starts_with(&message), "{}", error(&status));
    }
    assert_eq!(other.seen().len(), 0);
}
