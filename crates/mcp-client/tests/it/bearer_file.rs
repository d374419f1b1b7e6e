//! A token in a file that is replaced while the connection is open.

use std::fs;

use serde_json::json;
use switchboard_model::{Endpoint, Secret, ServerSpec, UpstreamAuth};
use switchboard_test_support::{ScriptedServer, ScriptedServerBuilder, Tool};

use crate::support::{call, http, open, sse, text};

fn with_file(mut spec: ServerSpec, path: &std::path::Path) -> ServerSpec {
    if let Endpoint::StreamableHttp { auth, .. } | Endpoint::Sse { auth, .. } = &mut spec.endpoint {
        let token = Secret::new("of-the-start");
        *auth = UpstreamAuth::BearerFile { path: path.to_owned(), token };
    }
    spec
}

#[tokio::test]
async fn a_token_that_was_replaced_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    for (name, transport) in [
        ("session era", ScriptedServerBuilder::legacy as fn(_) -> _),
        ("stateless era", ScriptedServerBuilder::modern),
        ("HTTP+SSE", ScriptedServerBuilder::sse_transport),
    ] {
        let builder = ScriptedServer::builder().tools([Tool::echo("echo")]);
        let server = transport(builder).requires_bearer("first-token").start().await;
        let address = if name == "HTTP+SSE" { sse(&server.url()) } else { http(&server.url()) };
        let spec = with_file(address, &path);
        // What the file holds at the connect counts, and not what it held at the start.
        fs::write(&path, "first-token\n").unwrap();
        let (connection, _) = open(&spec).await.expect(name);
        let echo = async || call(&connection, "echo", json!({})).await;
        assert_eq!(text(&echo().await.expect(name)), "{}");

        server.set_bearer("second-token");
        let refused = format!("{:?}", echo().await.expect_err(name));
        assert!(refused.contains("401") && !refused.contains("first-token"), "{name}: {refused}");
        fs::write(&path, "second-token\n").unwrap();
        assert_eq!(text(&echo().await.expect(name)), "{}", "{name}: without a new connection");
        assert!(!connection.is_closed(), "{name}");
        connection.close().await;
    }
}
