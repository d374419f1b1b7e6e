use switchboard_model::Secret;
use url::Url;

use super::*;

fn server(url: &str) -> AttachedServer {
    AttachedServer::new("mine", Url::parse(url).unwrap())
}

fn with_header(name: &str, value: &str) -> AttachedServer {
    let mut server = server("https://mcp.example/mcp");
    server.headers.insert(name.into(), Secret::new(value));
    server
}

#[track_caller]
fn refused(spec: &AttachedServer, expected: &str) {
    let error = check(spec, &EgressPolicy::default()).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(!error.is_about_room());
}

#[test]
fn what_may_be_brought() {
    for url in ["https://mcp.example/mcp", "http://mcp.example:8080/s/key?x=1", "https://1.1.1.1/"]
    {
        assert_eq!(check(&server(url), &EgressPolicy::default()), Ok(()), "{url}");
    }
    assert_eq!(check(&with_header("X-Api-Key", "k"), &EgressPolicy::default()), Ok(()));
    let signed_in = AttachedServer { bearer: Some(Secret::new("t")), ..with_header("x-a", "b") };
    assert_eq!(check(&signed_in, &EgressPolicy::default()), Ok(()));
}

#[test]
fn names_and_addresses_that_cannot_be() {
    let url = || Url::parse("https://mcp.example/mcp").unwrap();
    for name in ["local", "@mine", "a.b", "", "a b"] {
        let spec = AttachedServer::new(name, url());
        refused(&spec, &format!("'{name}' cannot be the name of a server"));
    }
    refused(&AttachedServer::new("a\nb", url()), "'a\\nb' cannot be the name of a server");
    let rows = [
        ("file:///etc/passwd", "the address of server 'mine' is not an http or https address"),
        ("unix:/run/x", "the address of server 'mine' is not an http or https address"),
        (
            "http://169.254.169.254/latest",
            "the egress check refuses the address of server 'mine', 169.254.169.254: \
             it is a link-local address, where clouds keep their metadata",
        ),
        (
            "http://[::1]:80/",
            "the egress check refuses the address of server 'mine', [::1]: \
             it is an address of the machine itself",
        ),
    ];
    for (url, expected) in rows {
        refused(&server(url), expected);
    }
    let long = format!("https://mcp.example/{}", "x".repeat(LONGEST_URL));
    refused(&server(&long), "the address of server 'mine' is too long");
}

#[test]
fn headers_that_cannot_be() {
    let rows = [
        (with_header("a b", "x"), "'a b' of server 'mine' has a name that no header can have"),
        (with_header("Host", "x"), "'Host' of server 'mine' belongs to the connection"),
        (
            with_header("Mcp-Session-Id", "x"),
            "'Mcp-Session-Id' of server 'mine' belongs to the connection",
        ),
        (
            with_header("proxy-authorization", "x"),
            "'proxy-authorization' of server 'mine' belongs to the connection",
        ),
        (
            with_header("x-key", "hunter2\r\nx: y"),
            "'x-key' of server 'mine' has a value with characters that a header cannot carry",
        ),
        (
            AttachedServer { bearer: Some(Secret::new("t")), ..with_header("Authorization", "x") },
            "'Authorization' of server 'mine' repeats the credentials that the bearer token sets",
        ),
        (
            AttachedServer {
                bearer: Some(Secret::new("hunter2\n")),
                ..server("https://mcp.example/")
            },
            "'authorization' of server 'mine' has a bearer token that a header cannot carry",
        ),
        (
            with_header("x-key", &"x".repeat(MOST_HEADER_BYTES)),
            "'x-key' of server 'mine' exceeds the limit on the number or the size of headers",
        ),
    ];
    for (spec, expected) in rows {
        refused(&spec, &format!("the header {expected}"));
    }
    let mut twice = with_header("x-key", "1");
    twice.headers.insert("X-Key".into(), Secret::new("2"));
    refused(
        &twice,
        "the header 'x-key' of server 'mine' is written twice; header names ignore case",
    );
    let mut many = server("https://mcp.example/");
    many.headers.extend((0..=MOST_HEADERS).map(|n| (format!("x-{n:02}"), Secret::new("v"))));
    refused(
        &many,
        "the header 'x-32' of server 'mine' exceeds the limit on the number or the size of headers",
    );
}
