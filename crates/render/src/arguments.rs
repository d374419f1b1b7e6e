//! Maps arguments from the names shown to a model back to the names that the server declared.
//!
//! A provider that rejects a property key is shown another one, and one that accepts only strings in an `enum` is shown
//! strings. The shown key is derived from the original key alone, so it does not depend on the rest of the tool, and it
//! never equals a key that is shown unchanged (see [`shown_key`]).

use serde_json::{Map, Value};

use crate::text::is_hidden;

/// The property keys that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// `[A-Za-z0-9_.-]{1,64}`
    Wide,
    /// `[A-Za-z_][A-Za-z0-9_]{0,63}`
    Narrow,
    /// Any characters except invisible ones.
    Visible,
}

const MAX_KEY: usize = 64;
/// Separates the readable part of a replaced key from its hash. An original key that ends in this form is replaced too,
/// so that the two cannot be confused.
const MARK: &str = "_x";
const HASH_LENGTH: usize = 8;

impl KeyRule {
    pub(crate) fn takes(self, key: &str) -> bool {
        let fits = !key.is_empty() && key.len() <= MAX_KEY;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match self {
            Self::Wide => {
                fits && key.bytes().all(|byte| plain(byte) || matches!(byte, b'.' | b'-'))
            }
            Self::Narrow => {
                fits && key.bytes().all(plain) && !key.starts_with(|c: char| c.is_ascii_digit())
            }
            Self::Visible => !key.chars().any(is_hidden),
        }
    }
}

/// The key that is shown in place of one that the rule rejects; `None` if the key is shown unchanged.
pub(crate) fn shown_key(key: &str, rule: KeyRule) -> Option<String> {
    if rule.takes(key) && !looks_changed(key) {
        return None;
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let room = MAX_KEY - MARK.len() - HASH_LENGTH;
    let mut shown: String = key.chars().map(plain).take(room).collect();
    if shown.starts_with(|c: char| c.is_ascii_digit()) {
        shown.insert(0, '_');
        shown.truncate(room);
    }
    shown.push_str(MARK);
    shown.extend(blake3::hash(key.as_bytes()).to_hex().chars().take(HASH_LENGTH));
    Some(shown)
}

/// Whether a key ends in the form of a replaced one.
fn looks_changed(key: &str) -> bool {
    let bytes = key.as_bytes();
    let Some(at) = bytes.len().checked_sub(HASH_LENGTH) else { return false };
    let (head, hash) = bytes.split_at(at);
    head.ends_with(MARK.as_bytes())
        && hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Maps the arguments of one tool between their shown and their original form.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentMap(Shape);

impl ArgumentMap {
    /// `None` if shown and original form are the same.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        (!shape.is_empty()).then_some(Self(shape))
    }

    /// Converts a model's arguments into the form that the server expects. Keys that were not renamed stay unchanged.
    pub fn restore(&self, arguments: Value) -> Value {
        self.0.turn(arguments, Way::Back)
    }

    /// Converts original arguments into their shown form, for earlier calls in a conversation that is sent to a
    /// provider.
    pub fn rename(&self, arguments: Value) -> Value {
        self.0.turn(arguments, Way::There)
    }
}

/// The differences between shown and original form of one schema and of the schemas below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shape {
    /// Shown and original keys of an object.
    keys: Vec<(Box<str>, Box<str>)>,
    /// Differences below properties, by original key.
    properties: Vec<(Box<str>, Shape)>,
    /// Differences below additional properties.
    others: Option<Box<Shape>>,
    /// Differences below the elements of an array.
    items: Option<Box<Shape>>,
    /// Shown and original values.
    values: Vec<(Box<str>, Value)>,
}

#[derive(Clone, Copy)]
enum Way {
    There,
    Back,
}

impl Shape {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.properties.is_empty()
            && self.others.is_none()
            && self.items.is_none()
            && self.values.is_empty()
    }

    pub(crate) fn renamed(&mut self, shown: &str, original: &str) {
        if !self.keys.iter().any(|(known, _)| &**known == shown) {
            self.keys.push((shown.into(), original.into()));
        }
    }

    pub(crate) fn value(&mut self, shown: &str, original: Value) {
        if !self.values.iter().any(|(known, _)| &**known == shown) {
            self.values.push((shown.into(), original));
        }
    }

    pub(crate) fn property(&mut self, original: &str, below: Shape) {
        if below.is_empty() {
            return;
        }
        match self.properties.iter_mut().find(|(known, _)| &**known == original) {
            Some((_, known)) => known.absorb(below),
            None => self.properties.push((original.into(), below)),
        }
    }

    pub(crate) fn other(&mut self, below: Shape) {
        absorb(&mut self.others, below);
    }

    pub(crate) fn item(&mut self, below: Shape) {
        absorb(&mut self.items, below);
    }

    /// Adds the differences of another schema for the same value, such as a branch of `anyOf`. Shown keys are derived
    /// from the original ones, so branches cannot contradict each other.
    pub(crate) fn absorb(&mut self, other: Shape) {
        for (shown, original) in other.keys {
            self.renamed(&shown, &original);
        }
        for (original, below) in other.properties {
            self.property(&original, below);
        }
        for (shown, original) in other.values {
            self.value(&shown, original);
        }
        if let Some(below) = other.others {
            self.other(*below);
        }
        if let Some(below) = other.items {
            self.item(*below);
        }
    }

    /// Drops the mapping of values, for enums in which a shown string is also an original value.
    pub(crate) fn forget_values(&mut self) {
        self.values.clear();
    }

    pub(crate) fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    fn turn(&self, value: Value, way: Way) -> Value {
        match value {
            Value::Object(members) => self.turn_members(members, way),
            Value::Array(elements) => match &self.items {
                Some(items) => elements.into_iter().map(|value| items.turn(value, way)).collect(),
                None => Value::Array(elements),
            },
            value => self.turn_value(value, way),
        }
    }

    fn turn_value(&self, value: Value, way: Way) -> Value {
        let mut values = self.values.iter();
        match way {
            Way::Back => values
                .find(|(shown, _)| value.as_str() == Some(shown))
                .map_or(value, |(_, original)| original.clone()),
            Way::There => values
                .find(|(_, original)| *original == value)
                .map_or(value, |(shown, _)| Value::from(&**shown)),
        }
    }

    fn turn_members(&self, members: Map<String, Value>, way: Way) -> Value {
        let mut turned = Map::new();
        for (key, value) in members {
            let pair = self.keys.iter().find(|(shown, original)| match way {
                Way::Back => **shown == *key,
                Way::There => **original == *key,
            });
            let (original, wanted) = match (pair, way) {
                (None, _) => (key.as_str(), key.clone()),
                (Some((_, original)), Way::Back) => (&**original, original.to_string()),
                (Some((shown, original)), Way::There) => (&**original, shown.to_string()),
            };
            let below = self.properties.iter().find(|(known, _)| **known == *original);
            let below = below.map(|(_, shape)| shape).or(self.others.as_deref());
            let value = match below {
                Some(shape) => shape.turn(value, way),
                None => value,
            };
            turned.insert(wanted, value);
        }
        Value::Object(turned)
    }
}

fn absorb(place: &mut Option<Box<Shape>>, below: Shape) {
    if below.is_empty() {
        return;
    }
    match place {
        Some(known) => known.absorb(below),
        None => *place = Some(Box::new(below)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_is_refused_gets_a_new_one_made_from_itself() {
        let narrow = |key: &str| shown_key(key, KeyRule::Narrow);
        let cases = [
            ("symbol", None),
            ("from-date", Some("from_date_x5cee5f84")),
            ("first name", Some("first_name_x62ba2f0a")),
            ("2nd", Some("_2nd_x9d4bb8f4")),
            ("", Some("_xaf1349b9")),
            ("城市", Some("___x8d0a3fb7")),
        ];
        for (key, expected) in cases {
            let shown = narrow(key);
            assert_eq!(shown.is_some(), expected.is_some(), "{key:?}");
            if let Some(shown) = shown {
                assert!(KeyRule::Narrow.takes(&shown), "{shown}");
                let readable = expected.unwrap().rsplit_once("_x").unwrap().0;
                assert_eq!(shown.rsplit_once("_x").unwrap().0, readable);
            }
        }
        assert_eq!(shown_key("from-date", KeyRule::Wide), None);
        assert_eq!(shown_key("first name", KeyRule::Visible), None);
        assert!(shown_key("first\u{202E}name", KeyRule::Visible).is_some());
        assert_eq!(narrow(&"k".repeat(300)).unwrap().len(), MAX_KEY);
    }

    #[test]
    fn a_plain_key_that_looks_changed_is_changed() {
        let shown = shown_key("first name", KeyRule::Narrow).unwrap();
        assert_ne!(shown_key(&shown, KeyRule::Narrow), None);
        assert_ne!(shown_key(&shown, KeyRule::Narrow).unwrap(), shown);
    }

    #[test]
    fn values_and_keys_are_turned_back_where_they_were_changed_and_nowhere_else() {
        let mut below = Shape::default();
        below.value("1", json!(1));
        let mut shape = Shape::default();
        shape.renamed("a_b", "a b");
        shape.property("a b", below.clone());
        shape.item(below);
        let map = ArgumentMap::new(shape).unwrap();
        let shown = json!({"a_b": "1", "c": {"a_b": "1"}});
        let original = json!({"a b": 1, "c": {"a_b": "1"}});
        assert_eq!(map.restore(shown.clone()), original);
        assert_eq!(map.rename(original), shown);
        assert_eq!(map.restore(json!(["1", "2"])), json!([1, "2"]));
        assert_eq!(ArgumentMap::new(Shape::default()), None);
    }

    proptest! {
        #[test]
        fn new_keys_are_legal_and_two_keys_never_share_one(
            keys in proptest::collection::btree_set("[a-c._ é-]{0,4}|[ab]{60,70}|a_x[0-9a-f]{8}", 2..20),
            rule in prop_oneof![Just(KeyRule::Wide), Just(KeyRule::Narrow)],
        ) {
            let shown: Vec<String> =
                keys.iter().map(|key| shown_key(key, rule).unwrap_or_else(|| key.clone())).collect();
            for key in &shown {
                prop_assert!(rule.takes(key), "{}", key);
            }
            let distinct: std::collections::BTreeSet<_> = shown.iter().collect();
            prop_assert_eq!(distinct.len(), keys.len());
        }
    }
}
