//! What the claims of a token grant.

use serde_json::{Map, Value};
use switchboard_model::{Access, ClaimRule, JwtGrants, Role};

/// The role and the access that rules give to the claims of a token.
pub(crate) fn granted(grants: &JwtGrants, claims: &Map<String, Value>) -> (Option<Role>, Access) {
    let Some(rules) = &grants.rules else { return (None, Access::all()) };
    let matching: Vec<&ClaimRule> = rules.iter().filter(|rule| matches(rule, claims)).collect();
    if matching.is_empty() {
        let otherwise = grants.otherwise.as_ref();
        let access = otherwise.map(|it| Access::of(it.rule.clone(), it.limits));
        return (otherwise.and_then(|it| it.role), access.unwrap_or_else(Access::none));
    }
    let role = matching.iter().filter_map(|rule| rule.grant.role).max();
    let all = matching.iter().map(|rule| (rule.grant.rule.clone(), rule.grant.limits));
    (role, Access::union(all))
}

/// Whether the claim of a rule has one of its values. The claim may be a text, a number, a truth value, a list of these, or
/// a text of words as `scope` is. Everything else matches nothing.
fn matches(rule: &ClaimRule, claims: &Map<String, Value>) -> bool {
    let found = match rule.claim.strip_prefix('/') {
        Some(_) => pointed(claims, &rule.claim),
        None => claims.get(&rule.claim),
    };
    let is_meant = |value: &Value| match value {
        Value::String(text) => rule.values.contains(text),
        Value::Number(number) => rule.values.contains(&number.to_string()),
        Value::Bool(flag) => rule.values.contains(&flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    match found {
        Some(Value::Array(values)) => values.iter().any(is_meant),
        // `scope` (RFC 8693) and `scp` of some issuers are words in one text. In other claims a blank belongs to the value.
        Some(Value::String(text)) if matches!(rule.claim.as_str(), "scope" | "scp") => {
            text.split(' ').any(|word| rule.values.iter().any(|value| value == word))
        }
        Some(value) => is_meant(value),
        None => false,
    }
}

/// The value at a JSON pointer.
fn pointed<'a>(claims: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let mut parts = pointer.strip_prefix('/')?.split('/');
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let first = claims.get(&unescaped(parts.next()?))?;
    parts.try_fold(first, |value, part| match value {
        Value::Object(members) => members.get(&unescaped(part)),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use switchboard_model::{AccessRule, CallerLimits, ClaimGrant};

    use super::*;

    fn rule(claim: &str, values: &[&str], set: &str) -> ClaimRule {
        ClaimRule {
            claim: claim.into(),
            values: values.iter().map(|value| (*value).into()).collect(),
            grant: grant(set),
        }
    }

    fn grant(set: &str) -> ClaimGrant {
        let rule = AccessRule { toolsets: Some(vec![set.into()]), ..AccessRule::ALL };
        ClaimGrant { rule, ..ClaimGrant::default() }
    }

    fn sets(access: &Access) -> Vec<String> {
        let rules = access.tools.as_ref().expect("narrowed");
        rules.iter().flat_map(|rule| rule.toolsets.clone().unwrap_or_default()).collect()
    }

    #[test]
    fn claims_of_every_shape_match_or_match_nothing() {
        let check = |claim: &str, value: Value, expected: bool| {
            let rule = rule(claim, &["sales", "7", "true"], "crm");
            let claims = json!({"groups": value, "nested": {"a/b": [value]}});
            let claims = claims.as_object().unwrap();
            assert_eq!(matches(&rule, claims), expected, "{claim} {claims:?}");
        };
        for (value, expected) in [
            (json!("sales"), true),
            (json!(["it", "sales"]), true),
            (json!(7), true),
            (json!([7]), true),
            (json!(true), true),
            (json!("sales it"), false),
            (json!("Sales"), false),
            (json!([]), false),
            (json!([["sales"]]), false),
            (json!({"sales": true}), false),
            (json!(null), false),
        ] {
            check("groups", value.clone(), expected);
            check("/groups", value, expected);
        }
        check("/nested/a~1b/0", json!("sales"), true);
        check("/nested/a~1b/1", json!("sales"), false);
        check("/nested/c", json!("sales"), false);
        check("nested/a~1b/0", json!("sales"), false);
        let scope = json!({"scope": "mcp sales"});
        assert!(matches(&rule("scope", &["sales"], "crm"), scope.as_object().unwrap()));
    }

    #[test]
    fn matching_rules_unite_and_no_match_gets_the_default() {
        let claims = json!({"groups": ["sales", "it"]});
        let claims = claims.as_object().unwrap();
        let all = |rules: Option<Vec<ClaimRule>>, otherwise: Option<ClaimGrant>| {
            granted(&JwtGrants { rules, otherwise }, claims)
        };
        assert_eq!(all(None, None), (None, Access::all()), "without rules nothing is withheld");
        assert_eq!(all(Some(Vec::new()), None), (None, Access::none()));
        let other = rule("groups", &["hr"], "people");
        assert_eq!(all(Some(vec![other.clone()]), None), (None, Access::none()));
        let (_, access) = all(Some(vec![other]), Some(grant("public")));
        assert_eq!(sets(&access), ["public"]);
        let mut it = rule("groups", &["it"], "servers");
        it.grant.role = Some(Role::Operator);
        it.grant.limits = CallerLimits { max_instances: Some(2), rate: None };
        let (role, access) = all(Some(vec![rule("groups", &["sales"], "crm"), it]), None);
        assert_eq!(
            (role, sets(&access)),
            (Some(Role::Operator), vec!["crm".into(), "servers".into()])
        );
        assert_eq!(access.limits, CallerLimits::default(), "the other rule sets no limit");
    }
}
