//! Parses `--listen`.

use std::net::{Ipv4Addr, SocketAddr};

/// Parses an address with a port, `localhost:PORT`, or a port alone, which means the loopback address.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let here = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(here(port));
    }
    Err(if text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok()) {
        format!("write 127.0.0.1{text} for this machine, or 0.0.0.0{text} for all networks")
    } else if text.parse::<std::net::IpAddr>().is_ok() || text == "localhost" {
        "the port is missing, such as in 127.0.0.1:8420".into()
    } else {
        "expected an address such as 127.0.0.1:8420, localhost:8420, or a port such as 8420".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, &str>) {
            match (listen_address(text), expected) {
                (Ok(address), Ok(expected)) => assert_eq!(address.to_string(), expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text}: {why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        check("8420", Ok("127.0.0.1:8420"));
        check("localhost:8420", Ok("127.0.0.1:8420"));
        check("localhost:0", Ok("127.0.0.1:0"));
        check("127.0.0.1:8420", Ok("127.0.0.1:8420"));
        check("0.0.0.0:80", Ok("0.0.0.0:80"));
        check("[::1]:8420", Ok("[::1]:8420"));
        check(":8420", Err("0.0.0.0:8420"));
        check("127.0.0.1", Err("port is missing"));
        check("localhost", Err("port is missing"));
        check("99999", Err("expected an address"));
        check("example.com:80", Err("expected an address"));
        check("", Err("expected an address"));
    }
}
