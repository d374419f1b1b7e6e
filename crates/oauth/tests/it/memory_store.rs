//! A store that forgets everything with the test, and a clock that stands still.

use std::sync::Mutex;

use futures::FutureExt;
use switchboard_model::{Secret, ServerName};
use switchboard_oauth::{Kept, TokenStore};

#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    grant: Mutex<Option<Secret>>,
    wanted: Mutex<Option<String>>,
}

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, _: &'a ServerName, _: Option<&'a str>) -> Kept<'a, Option<Secret>> {
        let grant = self.grant.lock().unwrap().clone();
        async move { Ok(grant) }.boxed()
    }

    fn save<'a>(&'a self, _: &'a ServerName, _: &'a str, grant: Secret) -> Kept<'a, ()> {
        *self.grant.lock().unwrap() = Some(grant);
        async { Ok(()) }.boxed()
    }

    fn forget<'a>(&'a self, _: &'a ServerName) -> Kept<'a, bool> {
        let had_one = self.grant.lock().unwrap().take().is_some();
        async move { Ok(had_one) }.boxed()
    }

    fn wanted<'a>(&'a self, _: &'a ServerName) -> Kept<'a, Option<String>> {
        let wanted = self.wanted.lock().unwrap().clone();
        async move { Ok(wanted) }.boxed()
    }

    fn want<'a>(&'a self, _: &'a ServerName, wanted: Option<String>) -> Kept<'a, ()> {
        *self.wanted.lock().unwrap() = wanted;
        async { Ok(()) }.boxed()
    }

    fn now_ms(&self) -> i64 {
        0
    }
}
