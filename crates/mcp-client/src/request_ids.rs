//! Request ids that cannot be guessed.
//!
//! A server may serve several callers. If one caller can influence the messages that the server writes, it must not be
//! able to forge the response to another caller's request. An id therefore carries a tag that depends on a secret of
//! the connection.

use std::hash::{BuildHasher as _, RandomState};

use serde_json::value::RawValue;

/// The prefix of the ids. rmcp uses plain numbers on the same connection.
const OURS: &str = "sb-";

/// The secret of one connection. Its keys come from the operating system.
#[derive(Debug, Default)]
pub(crate) struct RequestIds(RandomState);

impl RequestIds {
    /// The id of the request with this number.
    pub(crate) fn id(&self, number: u64) -> String {
        format!("{OURS}{number}-{:016x}", self.0.hash_one(number))
    }

    /// The number of the request with this id, which is JSON; `None` if the id is not valid.
    pub(crate) fn number(&self, id: &RawValue) -> Option<u64> {
        let id = id.get().strip_prefix('"')?.strip_suffix('"')?;
        let (number, tag) = id.strip_prefix(OURS)?.split_once('-')?;
        let number = number.parse().ok()?;
        let tag = (tag.len() == 16).then(|| u64::from_str_radix(tag, 16).ok())??;
        (self.0.hash_one(number) == tag).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(ids: &RequestIds, id: &str) -> Option<u64> {
        ids.number(&RawValue::from_string(format!("\"{id}\"")).unwrap())
    }

    #[test]
    fn only_ids_of_this_connection_are_ours() {
        let (ids, others) = (RequestIds::default(), RequestIds::default());
        let id = ids.id(12);
        assert_eq!(number(&ids, &id), Some(12));
        assert_eq!(number(&others, &id), None, "the secret is another");
        let (head, tag) = id.rsplit_once('-').unwrap();
        assert_eq!(number(&ids, &format!("sb-13-{tag}")), None, "the tag is that of another");
        for forged in
            [head.to_owned(), format!("{head}-"), format!("{head}-0"), "sb-12".into(), "12".into()]
        {
            assert_eq!(number(&ids, &forged), None, "{forged}");
        }
        let bare = RawValue::from_string("12".into()).unwrap();
        assert_eq!(ids.number(&bare), None);
    }
}
