//! Turns of callers with rights and accounts of their own: a key that is narrowed while its turn streams, and a tool at which
//! the person has not signed in.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;
use switchboard_chat::TurnStatus;
use switchboard_model::{
    Access, AccessRule, Caller, CallerLimits, Face, Identity, Role, ServerName,
};
use switchboard_runtime::{AccountChoice, SignInPages};
use switchboard_test_support::model_backends::{Account, Step};
use switchboard_test_support::{AccountEra, AccountServer};

use crate::lab::{Lab, ended, said, until, until_event};

fn only(toolset: &str) -> Access {
    let rule = AccessRule { toolsets: Some(vec![toolset.into()]), ..AccessRule::ALL };
    Access::of(rule, CallerLimits::default())
}

#[tokio::test]
async fn a_key_that_is_narrowed_while_its_turn_streams_reaches_the_tool_no_more() {
    let lab = Lab::open().await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let caller = Caller::local(Face::Http);
        let (before, asked) = (lab.calls(), lab.fake.answers(account).len());
        // The key is narrowed after the request was sent and before the model calls the tool.
        let access = caller.access.clone();
        lab.fake.decide(account.backend, move |_| {
            if !access.load().has_all_tools() {
                return Step::text("never mind");
            }
            access.set(only("look"));
            Step::text("wait for it").call("shop__order", json!({"n": 1}))
        });
        let turn = talk.try_begin_as(caller.clone(), said("go")).await.unwrap();
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        let results = talk.results().await;
        assert!(results.len() == 1 && results[0].1, "{}: {results:?}", account.name);
        assert_eq!(lab.calls(), before, "{}: the tool was not called", account.name);
        lab.sessions.access_changed();
        // The next turn of the same caller is not shown the tool.
        let next = talk.try_begin_as(caller.clone(), said("and now?")).await.unwrap();
        assert_eq!(ended(&next).await.status, TurnStatus::Completed, "{}", account.name);
        let declared = lab.declares(account, asked, "shop__order");
        assert_eq!(
            (declared.first(), declared.last()),
            (Some(&true), Some(&false)),
            "{}",
            account.name
        );
        lab.is_clean();
    }
    lab.end().await;
}

#[tokio::test]
async fn a_tool_that_needs_a_sign_in_says_so_to_the_model_and_names_the_page() {
    let tracker = AccountServer::open(AccountEra::Stateless).await;
    let lab = Lab::with_accounts(&tracker).await;
    let base = "http://127.0.0.1:1".parse().unwrap();
    let pages = SignInPages { base, needs_proof: true };
    lab.board.accounts().serve_pages(move || Some(pages.clone()));
    // Somebody else has signed in: the tools are known.
    let identity = Arc::new(Identity::of_key("1", &"anna".into(), None));
    let anna = Caller::new("key:1".into(), identity, Role::Client, Face::Http);
    let prompt = lab
        .board
        .begin_sign_in(&ServerName::new("tracker"), AccountChoice::OfCalls, &anna)
        .await
        .unwrap();
    prompt.flow.bind("browser");
    let back = tracker.visit(&prompt.flow.offer().await.unwrap().url, "anna").await;
    let code = back.split(['?', '&']).find_map(|part| part.strip_prefix("code=")).unwrap();
    prompt.flow.finish(code, Some(&tracker.issuer())).await.unwrap();
    lab.board.account_changed(prompt.flow.server(), prompt.flow.owner());
    until(|| lab.board.snapshot().index().permits("tracker.whoami")).await;
    for account in Account::ALL {
        let talk = lab.talk(account).await;
        let turn = talk.begin("call tracker__whoami {}").await;
        assert_eq!(ended(&turn).await.status, TurnStatus::Completed, "{}", account.name);
        let (text, is_error) = talk.results().await.pop().unwrap();
        assert!(is_error && text.contains("needs a sign-in"), "{}: {text}", account.name);
        assert!(text.contains("http://127.0.0.1:1/connect/"), "{}: {text}", account.name);
        let shown = until_event(&turn, "tool_result").await;
        assert!(shown.to_string().contains("/connect/"), "the person sees it: {shown}");
        lab.is_clean();
    }
    assert_eq!(tracker.calls(), Vec::<String>::new(), "nothing was sent");
    lab.end().await;
}
