//! Dependencies are allowed, and declared ones are used.

use switchboard_xtask::{
    Declared, Dependency, dependencies, unused_dependencies, unwanted_dependencies, workspace_root,
};

#[test]
fn dependencies_are_allowed_and_used() {
    let root = workspace_root();
    let (all, declared) = dependencies(&root).unwrap();
    assert!(all.len() > 100 && declared.len() > 100, "cargo metadata lists them");
    assert_eq!(unwanted_dependencies(&all), Vec::<String>::new());
    assert_eq!(unused_dependencies(&root, &declared), Vec::<String>::new());
}

#[test]
fn what_is_unwanted_is_named_with_its_reason() {
    let dependency = |name: &str, licence: Option<&str>, source: Option<&str>| Dependency {
        name: name.into(),
        licence: licence.map(str::to_owned),
        source: source.map(str::to_owned),
    };
    let registry = Some("registry+somewhere");
    let unwanted = unwanted_dependencies(&[
        dependency("ours", None, None),
        dependency("fine", Some("(MIT OR Apache-2.0) AND Unicode-3.0"), registry),
        dependency("copyleft", Some("MIT AND GPL-3.0-only"), registry),
        dependency("silent", None, registry),
        dependency("fork", Some("MIT/Apache-2.0"), Some("git+somewhere")),
        dependency("openssl-sys", Some("MIT"), registry),
    ]);
    assert_eq!(
        unwanted,
        [
            "copyleft is under GPL-3.0-only, which is not in the list of licences",
            "silent names no licence",
            "fork comes from git+somewhere, not from the registry",
            "openssl-sys is banned: TLS is rustls: the same everywhere, and nothing to install",
        ]
    );
    let declared = |name: &str| Declared { directory: "crates/xtask".into(), name: name.into() };
    assert_eq!(
        unused_dependencies(&workspace_root(), &[declared("anyhow"), declared("no-such-crate")]),
        ["crates/xtask declares no-such-crate and does not use it"]
    );
}
