//! Keys of the store in a keyring.

use std::path::Path;

use switchboard_config::{
    ConfigInput, KeyringFault, KeyringReader, Loaded, Problems, SourceFile, load,
};
use switchboard_model::{Endpoint, StoreKey, UpstreamAuth};

use crate::support::{load_text, with_server};

const SECRET: &str = "hunter2-s3cret";

/// Loads a file whose store key is `keyring:` and `name`; the keyring has a key as `store-key`, and fails for other names.
fn with_keyring(security: &str, fault: &KeyringFault) -> Result<Loaded, Problems> {
    let text = format!("switchboard:\n  security: {security}\n  toolbox: {{mcps: []}}\n");
    let file = SourceFile { name: "c.yaml", directory: Path::new("."), text: &text };
    let nothing = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let keyring = |name: &str| match name {
        "store-key" => Ok(format!("{}\n", "07".repeat(32))),
        "short" => Ok("hunter2-s3cret".into()),
        _ => Err(fault.clone()),
    };
    let read_keyring: Option<KeyringReader<'_>> = Some(&keyring);
    load(&ConfigInput { file: Some(file), env: &[], read_secret: &nothing, read_keyring })
}

#[test]
fn the_keys_of_the_store_can_be_in_a_keyring() {
    let fault = KeyringFault::NoEntry;
    let security = "{store_key: 'keyring:store-key', previous_store_keys: ['keyring:store-key']}";
    let loaded = with_keyring(security, &fault).unwrap();
    let keys = &loaded.plan.security.store_keys;
    let expected = StoreKey::parse(&"07".repeat(32)).unwrap();
    assert_eq!((keys.current.as_ref(), &keys.previous), (Some(&expected), &vec![expected.clone()]));
    assert!(!loaded.to_yaml().contains("0707"), "{}", loaded.to_yaml());
}

#[test]
fn a_keyring_that_gives_no_key_is_a_problem_with_a_way_out() {
    for (name, fault, said, help) in [
        ("other", KeyringFault::NoEntry, "has no such entry", "secret-tool store"),
        ("other", KeyringFault::Locked, "is locked", "unlock it"),
        ("other", KeyringFault::Unsupported, "not supported", "`file:/path`"),
        ("other", KeyringFault::SeveralEntries(2), "has 2 such entries", "secret-tool search"),
        ("other", KeyringFault::NotText, "not a text", "secret-tool store"),
        ("other", KeyringFault::Unreachable("no bus".into()), "(no bus)", "Secret Service"),
        ("short", KeyringFault::NoEntry, "is not a key of 32 bytes", "openssl rand"),
        (" ", KeyringFault::NoEntry, "names no entry", "keyring:store-key"),
    ] {
        let security = format!("{{store_key: 'keyring:{name}'}}");
        let problems = with_keyring(&security, &fault).unwrap_err().to_string();
        let told = problems.contains("switchboard.security.store_key");
        assert!(told && problems.contains(said) && problems.contains(help), "{problems}");
        assert!(!problems.contains(SECRET), "{problems}");
    }
}

#[test]
fn a_keyring_is_read_for_keys_of_the_store_alone() {
    let text = with_server(
        "- {name: a, url: 'http://h', mode: strict, auth: {bearer: 'keyring:store-key'}}",
    );
    let loaded = load_text(&text).unwrap();
    let Endpoint::StreamableHttp { auth: UpstreamAuth::Bearer(bearer), .. } =
        &loaded.plan.servers[0].spec.endpoint
    else {
        panic!("http")
    };
    assert_eq!(bearer.expose(), "keyring:store-key");
}
