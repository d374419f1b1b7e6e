//! Tokens of accounts: renewed before and after their end, once for all turns; missing, refused and foreign ones; named
//! credentials.

use std::fs;
use std::time::Duration;

use futures::future::join_all;
use pretty_assertions::assert_eq;
use switchboard_chat::TurnStatus;
use switchboard_sessions::Change;
use switchboard_turns::{NewTurn, TurnEnd};

use crate::account_lab::{ALL, ANTHROPIC, AccountLab, CHATGPT, GEMINI, named, token};
use crate::lab::{Talk, ended, said};

async fn outcome(talk: &Talk<'_>, text: &str) -> TurnEnd {
    ended(&*talk.begin(text).await).await
}

fn error_of(end: &TurnEnd) -> (&str, &str) {
    let error = end.error.as_ref().unwrap();
    (error.kind, error.message.as_str())
}

/// The bearer token of the last request.
fn last_token(
    lab: &AccountLab,
    account: switchboard_test_support::model_backends::Account,
) -> String {
    let request = lab.answers(account).pop().unwrap();
    request.headers["authorization"].trim_start_matches("Bearer ").to_owned()
}

#[tokio::test]
async fn without_a_sign_in_a_turn_says_how_to_sign_in() {
    let lab = AccountLab::signed_out("").await;
    for account in ALL {
        let name = named(account, "sign-in");
        let talk = lab.talk(account, "sign-in").await;
        let end = outcome(&talk, "hello").await;
        assert_eq!(end.status, TurnStatus::Failed);
        let expected = format!("needs sign-in: run `switchboard auth login {name}`");
        assert_eq!(error_of(&end), ("needs_sign_in", expected.as_str()));
        assert_eq!(lab.answers(account).len(), 0, "nothing is asked");
        lab.sign_in(&name, "default").await;
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed, "at once");
    }
    lab.lab.end().await;
}

#[tokio::test]
async fn an_expired_token_is_renewed_before_the_request() {
    let lab = AccountLab::signed_out("").await;
    lab.office.set_lifetime(0);
    for account in ALL {
        lab.sign_in(&named(account, "sign-in"), "default").await;
        lab.office.set_lifetime(3600);
        let refreshed = lab.office.refreshed();
        let talk = lab.talk(account, "sign-in").await;
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
        assert_eq!(lab.office.refreshed(), refreshed + 1, "{}", account.name);
        let refused = lab.lab.fake.requests().iter().filter(|it| it.refusal.is_some()).count();
        assert_eq!(refused, 0, "the expired token was not sent");
        lab.office.set_lifetime(0);
    }
    lab.lab.end().await;
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_the_model_is_asked_again() {
    let lab = AccountLab::open().await;
    for account in ALL {
        let talk = lab.talk(account, "sign-in").await;
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
        let (before, refreshed) = (last_token(&lab, account), lab.office.refreshed());
        lab.lab.fake.refuse_credential(&before);
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
        assert_eq!(lab.office.refreshed(), refreshed + 1, "{}", account.name);
        assert_ne!(last_token(&lab, account), before);
    }
    lab.lab.end().await;
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_ends_the_turn_until_somebody_signs_in() {
    let lab = AccountLab::open().await;
    let mut talks = Vec::new();
    for account in ALL {
        let talk = lab.talk(account, "sign-in").await;
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
        lab.lab.fake.refuse_credential(&last_token(&lab, account));
        talks.push((account, talk));
    }
    lab.office.revoke_refresh();
    for (account, talk) in &talks {
        let end = outcome(talk, "hello").await;
        let name = named(*account, "sign-in");
        let expected = format!("needs sign-in: run `switchboard auth login {name}`");
        assert_eq!(error_of(&end), ("needs_sign_in", expected.as_str()));
        lab.sign_in(&name, "default").await;
        assert_eq!(outcome(talk, "hello").await.status, TurnStatus::Completed, "{}", account.name);
    }
    for request in lab.lab.fake.requests() {
        assert!(!request.body.to_string().contains("access-"), "a token is in a body");
    }
    lab.lab.end().await;
}

#[tokio::test]
async fn a_hundred_turns_with_an_expired_token_make_one_refresh() {
    let lab = AccountLab::signed_out("").await;
    lab.office.set_lifetime(0);
    lab.sign_in(&named(ANTHROPIC, "sign-in"), "default").await;
    lab.office.set_lifetime(3600);
    lab.office.set_pause(Duration::from_millis(200));
    let talks = join_all((0..100).map(|_| lab.talk(ANTHROPIC, "sign-in"))).await;
    let ends = join_all(talks.iter().map(|talk| outcome(talk, "hello"))).await;
    assert!(ends.iter().all(|end| end.status == TurnStatus::Completed), "{:#?}", ends.first());
    assert_eq!(lab.office.refreshed(), 1);
    // The same when the provider refuses a token that looks valid.
    lab.lab.fake.refuse_credential(&last_token(&lab, ANTHROPIC));
    let ends = join_all(talks.iter().map(|talk| outcome(talk, "hello"))).await;
    assert!(ends.iter().all(|end| end.status == TurnStatus::Completed), "{:#?}", ends.first());
    assert_eq!(lab.office.refreshed(), 2);
    lab.lab.end().await;
}

#[tokio::test]
async fn a_token_file_is_read_again_when_it_changes_and_is_never_written() {
    let lab = AccountLab::signed_out("").await;
    let mut talks = Vec::new();
    for account in ALL {
        let talk = lab.talk(account, "file").await;
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
        assert_eq!(last_token(&lab, account), token("first"));
        talks.push((account, talk));
    }
    // The other program renews its tokens while this one uses them.
    lab.lab.fake.refuse_credential(&token("first"));
    for (account, talk) in talks {
        lab.write_token(account, &token("second"), None);
        let content = fs::read(lab.file(account)).unwrap();
        assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
        assert_eq!(last_token(&lab, account), token("second"));
        assert_eq!(fs::read(lab.file(account)).unwrap(), content);
    }
    lab.lab.end().await;
}

#[tokio::test]
async fn a_token_file_that_cannot_be_used_is_named() {
    let lab = AccountLab::signed_out("").await;
    for account in ALL {
        let talk = lab.talk(account, "file").await;
        let path = lab.file(account).display().to_string();
        // In 2001 and in 2096.
        let (past, future) = (1_000_000_000, 4_000_000_000);
        lab.write_token(account, &token("old"), Some(past));
        let end = outcome(&talk, "hello").await;
        let (kind, message) = error_of(&end);
        assert_eq!(kind, "needs_sign_in");
        assert!(message.starts_with(&format!("the token in `{path}` expired at ")), "{message}");
        fs::write(lab.file(account), "not json").unwrap();
        let end = outcome(&talk, "hello").await;
        assert!(error_of(&end).1.contains("it is not JSON"), "{end:#?}");
        fs::remove_file(lab.file(account)).unwrap();
        let end = outcome(&talk, "hello").await;
        assert!(error_of(&end).1.contains("it does not exist"), "{end:#?}");
        assert_eq!(lab.answers(account).len(), 0, "nothing is asked");
        lab.write_token(account, &token("refused"), Some(future));
        lab.lab.fake.refuse_credential(&token("refused"));
        let end = outcome(&talk, "hello").await;
        let (kind, message) = error_of(&end);
        assert_eq!(kind, "credentials");
        assert!(message.contains(&format!("the token is the one in `{path}`")), "{message}");
    }
    lab.lab.end().await;
}

#[tokio::test]
async fn a_session_chooses_one_of_the_credentials() {
    let work = ", credentials: {work: {kind: bearer, value: work-hunter2-s3cret}}";
    let lab = AccountLab::signed_out(work).await;
    lab.write_token(CHATGPT, &token("first"), None);
    let change = Change { credential: Some(Some("work".into())), ..Change::default() };
    let talk = lab.lab.talk_to(&named(ANTHROPIC, "sign-in"), change).await;
    assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
    assert_eq!(last_token(&lab, ANTHROPIC), "work-hunter2-s3cret");
    // A further sign-in at the issuer of `auth`.
    lab.sign_in(&named(ANTHROPIC, "sign-in"), "home").await;
    let home = NewTurn { credential: Some("home".into()), ..said("hello") };
    let end = ended(&talk.try_begin(home).await.unwrap()).await;
    assert_eq!(end.status, TurnStatus::Completed);
    assert_eq!(last_token(&lab, ANTHROPIC), "access-1");
    let end = outcome(&talk, "hello").await;
    assert_eq!(end.status, TurnStatus::Completed);
    assert_eq!(last_token(&lab, ANTHROPIC), "work-hunter2-s3cret", "the session's again");
    // Another provider has credentials of its own.
    let other = Change { provider: Some(Some(named(ANTHROPIC, "file"))), ..Change::default() };
    talk.change(other).await;
    assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed);
    assert_eq!(last_token(&lab, ANTHROPIC), token("first"));
    let unknown = NewTurn { credential: Some("nobody".into()), ..said("hello") };
    let refused = talk.try_begin(unknown).await.err().map(|error| error.to_string()).unwrap();
    let name = named(ANTHROPIC, "file");
    let expected =
        format!("the provider `{name}` has no credential `nobody`; known are default, work");
    assert!(refused.ends_with(&expected), "{refused}");
    lab.lab.is_clean();
    lab.lab.end().await;
}

#[tokio::test]
async fn the_project_of_code_assist_is_looked_up_once_for_each_account() {
    let lab = AccountLab::open().await;
    for way in ["sign-in", "file"] {
        let talk = lab.talk(GEMINI, way).await;
        for _ in 0..2 {
            assert_eq!(outcome(&talk, "hello").await.status, TurnStatus::Completed, "{way}");
        }
    }
    let methods = |name: &str| {
        lab.lab.fake.requests().iter().filter(|request| request.path.contains(name)).count()
    };
    assert_eq!(methods("loadCodeAssist"), 2, "once for each account");
    let projects = lab.answers(GEMINI).iter().all(|it| it.body["project"] == "fake-project-123");
    assert!(projects);
    lab.lab.end().await;
}
