//! Finds the tool that a client names in a call.

use switchboard_model::Plan;

/// The name under which the catalog has the tool that a client calls: by the id or the exposed name of a tool entry, by the
/// id of an `mcp` value, or by any other name, which is returned as it is.
pub fn tool_meant(plan: &Plan, name: &str) -> String {
    let by_id = plan.tools.iter().find(|tool| tool.id.as_deref() == Some(name));
    let by_name = || plan.tools.iter().find(|tool| tool.expose_as.as_deref() == Some(name));
    if let Some(tool) = by_id.or_else(by_name) {
        return tool.name.clone();
    }
    let server = plan.servers.iter().find(|server| server.spec.name.as_str() == name);
    match server.and_then(|server| server.tool_allowlist.as_deref()) {
        Some([only]) if !only.contains(['*', '?']) => format!("{name}.{only}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pretty_assertions::assert_eq;
    use switchboard_config::{ConfigInput, SourceFile, load};

    use super::*;

    const TEXT: &str = "
switchboard:
  toolbox:
    tools:
      - {type: mcp-tool, id: balance-tool, name: get_balance, mcp-tool: bank}
      - {type: mcp-tool, name: pay, mcp-tool: shop.pay_now}
    mcps:
      - {name: bank, url: 'http://localhost:1/', mode: dynamic, default_tool_config: {}, tool_allowlist: [balance]}
      - {name: shop, url: 'http://localhost:2/', mode: dynamic, default_tool_config: {}}
";

    #[test]
    fn a_tool_is_named_by_its_id_its_name_or_its_server() {
        let file = SourceFile { name: "a.yaml", directory: Path::new("."), text: TEXT };
        let read_secret = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let loaded = load(&ConfigInput {
            file: Some(file),
            env: &[],
            read_secret: &read_secret,
            read_keyring: None,
        });
        let plan = loaded.unwrap_or_else(|problems| panic!("{problems}")).plan;
        for (name, expected) in [
            ("balance-tool", "bank.balance"),
            ("get_balance", "bank.balance"),
            ("bank", "bank.balance"),
            ("pay", "shop.pay_now"),
            ("shop", "shop"),
            ("shop.find", "shop.find"),
            ("anything", "anything"),
        ] {
            assert_eq!(tool_meant(&plan, name), expected, "{name}");
        }
    }
}
