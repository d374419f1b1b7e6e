//! JSON of which only the outermost level is read. The bytes of every member and element stay as the app wrote them, so that
//! a provider's prompt cache sees the same prefix in every request.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON value as it was written.
pub(crate) type Raw = Box<RawValue>;

/// The members of an object, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawObject(Vec<(Box<str>, Raw)>);

impl RawObject {
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of a member. Of several with one name, the last one counts, as in most parsers.
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().rev().find(|(known, _)| &**known == name).map(|(_, value)| &**value)
    }

    /// The value of a member, parsed. `None` if it is absent or of another type.
    pub(crate) fn parsed<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Replaces a member at its place, or appends it.
    pub(crate) fn set(&mut self, name: &str, value: Raw) {
        match self.0.iter_mut().rev().find(|(known, _)| &**known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| &**known != name);
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// The object as JSON.
    pub(crate) fn to_json(&self) -> String {
        let length: usize =
            self.0.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum();
        let mut json = String::with_capacity(length + 2);
        json.push('{');
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                json.push(',');
            }
            json.push_str(&serde_json::Value::from(&**name).to_string());
            json.push(':');
            json.push_str(value.get());
        }
        json.push('}');
        json
    }

    pub(crate) fn to_raw(&self) -> Raw {
        raw(self.to_json())
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawObject;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Box<str>, Raw>()? {
                    members.push((name, value));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The elements of an array, as they were written. `None` if the value is no array.
pub(crate) fn elements(value: &RawValue) -> Option<Vec<Raw>> {
    serde_json::from_str(value.get()).ok()
}

/// An array of values that are already JSON.
pub(crate) fn array<'a>(values: impl IntoIterator<Item = &'a str>) -> Raw {
    let mut json = String::from("[");
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str(value);
    }
    json.push(']');
    raw(json)
}

/// A value that was serialised by us. Text that is no JSON becomes `null`.
pub(crate) fn raw(json: String) -> Raw {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A value as JSON text.
pub(crate) fn to_raw(value: &impl serde::Serialize) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn everything_but_the_replaced_member_keeps_its_bytes() {
        let text = r#"{"a": 1.50,"b":[ {"x":1e2} ],"ä\n":"\u00e4"}"#;
        let mut object = RawObject::read(text).unwrap();
        assert_eq!(object.to_json(), r#"{"a":1.50,"b":[ {"x":1e2} ],"ä\n":"\u00e4"}"#);
        object.set("b", raw("[]".into()));
        object.set("c", raw("true".into()));
        object.remove("a");
        assert_eq!(object.to_json(), r#"{"b":[],"ä\n":"\u00e4","c":true}"#);
        assert_eq!(object.parsed::<bool>("c"), Some(true));
        assert_eq!(object.names().count(), 3);
    }

    #[test]
    fn arrays_are_taken_apart_and_joined_without_a_change() {
        let array_text = r#"[{"a" : 1},2.0,"x"]"#;
        let value = raw(array_text.into());
        let parts = elements(&value).unwrap();
        assert_eq!(array(parts.iter().map(|part| part.get())).get(), array_text);
        assert!(elements(&raw("{}".into())).is_none());
    }
}
