//! The life of a turn with the demo model: callers that disconnect, come too early or come at once, and the shutdown.

use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_chat::{Block, History, Message, Reply, TurnStatus};
use switchboard_model::{Caller, Face, LocalToolChoice, Plan, ProviderPlan, ToolEntry};
use switchboard_runtime::{Board, BoardOptions, ExposureRule, LocalTools, Memory};
use switchboard_sessions::{Change, Session, SessionService};
use switchboard_store::Store;
use switchboard_turns::{LiveTurn, NewTurn, TurnError, Turns};

use crate::lab;

/// A board with local tools only, and one session.
pub(crate) struct Bench {
    pub(crate) board: Arc<Board>,
    pub(crate) sessions: Arc<SessionService>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) session: Arc<Session>,
}

pub(crate) async fn bench() -> Bench {
    bench_with(Vec::new()).await
}

pub(crate) async fn bench_with(providers: Vec<ProviderPlan>) -> Bench {
    let tools = ["sum_numbers", "multiply_numbers"].map(ToolEntry::named).to_vec();
    bench_of(providers, tools).await
}

pub(crate) async fn bench_of(providers: Vec<ProviderPlan>, tools: Vec<ToolEntry>) -> Bench {
    let local_tools = LocalToolChoice::NamedInTools;
    let plan = Plan { tools, local_tools, providers, ..Plan::default() };
    let options = BoardOptions {
        store: Store::in_memory().await.unwrap(),
        memory: Memory::Keep,
        local_tools: LocalTools::built_in(),
        exposure: ExposureRule::default(),
        guard: None,
    };
    let board = Board::start(plan, options, |_| {}).await.unwrap();
    let sessions = SessionService::start(board.clone());
    let turns = Turns::start(&board, sessions.clone(), &|_| None);
    let session =
        sessions.new_session(Some("s"), "local", Change::default(), Duration::ZERO).await.unwrap();
    Bench { board, sessions, turns, session }
}

impl Bench {
    pub(crate) async fn say(&self, text: &str) -> Result<Arc<LiveTurn>, TurnError> {
        self.turns.begin(&self.session, Caller::local(Face::Http), said(None, text)).await
    }

    pub(crate) async fn end(self) {
        self.turns.shutdown(Duration::ZERO).await;
        self.sessions.shutdown().await;
        self.board.shutdown(Duration::ZERO).await;
    }
}

pub(crate) fn said(id: Option<&str>, text: &str) -> NewTurn {
    NewTurn { id: id.map(str::to_owned), ..lab::said(text) }
}

fn last_name(turn: &LiveTurn) -> &'static str {
    turn.events_after(0).last().map_or("", |event| event.name)
}

#[tokio::test]
async fn a_turn_calls_tools_and_answers() {
    let bench = bench().await;
    let turn = bench.say("/call local__sum_numbers {\"a\": 1, \"b\": 2}").await.unwrap();
    let end = turn.ended().await.unwrap();
    assert_eq!((end.status, end.messages.len()), (TurnStatus::Completed, 4));
    assert!(end.text().contains('3'), "{}", end.text());
    assert_eq!(last_name(&turn), "done");
    let ids: Vec<_> = turn.events_after(0).iter().map(|event| event.id).collect();
    let expected: Vec<_> = (1..).take(ids.len()).collect();
    assert_eq!(ids, expected);
    let history = bench.turns.history(&bench.session).await.unwrap();
    assert_eq!(history.messages, end.messages);
    bench.end().await;
}

#[tokio::test]
async fn who_goes_away_while_a_turn_begins_leaves_the_session_free() {
    let bench = bench().await;
    for _ in 0..20 {
        let begin = bench.say("hello");
        // Polled once, then dropped: as a client that hangs up.
        let _gone = tokio::time::timeout(Duration::ZERO, begin).await;
        if let Some(turn) = bench.turns.running(&bench.session.id) {
            turn.cancel();
            turn.ended().await;
        }
    }
    let turn = bench.say("/say still here").await.unwrap();
    assert_eq!(turn.ended().await.unwrap().status, TurnStatus::Completed);
    bench.end().await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_as_soon_as_it_is_there_ends() {
    let bench = bench().await;
    for _ in 0..20 {
        let (turns, session) = (bench.turns.clone(), bench.session.clone());
        let beginning = async move {
            turns.begin(&session, Caller::local(Face::Http), said(None, "/slow 30")).await
        };
        let cancelling = async {
            loop {
                if let Some(turn) = bench.turns.running(&bench.session.id) {
                    turn.cancel();
                    return turn;
                }
                tokio::task::yield_now().await;
            }
        };
        let (begun, turn) = tokio::join!(beginning, cancelling);
        begun.unwrap();
        let end = tokio::time::timeout(Duration::from_secs(10), turn.ended()).await.unwrap();
        assert_eq!(end.unwrap().status, TurnStatus::Cancelled);
    }
    bench.end().await;
}

#[tokio::test]
async fn whoever_sees_the_end_finds_the_last_event() {
    let bench = bench().await;
    for _ in 0..20 {
        let turn = bench.say("/say x").await.unwrap();
        while turn.end().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(last_name(&turn), "done");
    }
    bench.end().await;
}

#[tokio::test]
async fn one_turn_at_a_time_and_each_name_once() {
    let bench = bench().await;
    let slow = bench
        .turns
        .begin(&bench.session, Caller::local(Face::Http), said(Some("one"), "/slow 30"))
        .await
        .unwrap();
    assert_eq!(bench.say("x").await.unwrap_err(), TurnError::Busy { turn: "one".into() });
    let again = bench
        .turns
        .begin(&bench.session, Caller::local(Face::Http), said(Some("one"), "/slow 30"))
        .await
        .unwrap();
    assert!(Arc::ptr_eq(&slow, &again), "the same name is the same turn");
    let history = History::new(Vec::new());
    let busy = bench.turns.set_history(&bench.session, &history).await;
    assert_eq!(busy, Err(TurnError::Busy { turn: "one".into() }));
    slow.cancel();
    slow.ended().await;

    let content = vec![Block::text("I was here")];
    let reply = Reply { content, turn: Some("two".into()), ..Reply::default() };
    let messages = vec![Message::user("x"), Message::Assistant(reply)];
    bench.turns.set_history(&bench.session, &History::new(messages)).await.unwrap();
    let has_run =
        bench.turns.begin(&bench.session, Caller::local(Face::Http), said(Some("two"), "x")).await;
    assert_eq!(has_run.unwrap_err(), TurnError::HasRun("two".into()), "also after a restart");
    bench.end().await;
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_can_be_replaced() {
    let bench = bench().await;
    let store = bench.board.store();
    bench.say("/say x").await.unwrap().ended().await;
    assert!(store.append_messages("s", 2, &["{".into()]).await.unwrap());
    let error = bench.say("x").await.unwrap_err();
    assert!(matches!(error, TurnError::Damaged { index: 2, .. }), "{error}");
    bench.turns.set_history(&bench.session, &History::new(Vec::new())).await.unwrap();
    let turn = bench.say("/say again").await.unwrap();
    assert_eq!(turn.ended().await.unwrap().text(), "again");
    bench.end().await;
}

#[tokio::test]
async fn what_says_nothing_is_refused_and_nothing_is_kept() {
    let bench = bench().await;
    for text in ["", " \n"] {
        assert_eq!(bench.say(text).await.unwrap_err(), TurnError::NothingSaid);
    }
    let bad = NewTurn { id: Some("a b".into()), ..said(None, "x") };
    assert_eq!(
        bench.turns.begin(&bench.session, Caller::local(Face::Http), bad).await.unwrap_err(),
        TurnError::BadName("a b".into())
    );
    let cold = NewTurn { temperature: Some(-1.0), ..said(None, "x") };
    let error =
        bench.turns.begin(&bench.session, Caller::local(Face::Http), cold).await.unwrap_err();
    assert_eq!(error.to_string(), "`temperature` must be from 0 to 2");
    assert_eq!(bench.turns.history(&bench.session).await.unwrap().messages, []);
    bench.end().await;
}

#[tokio::test]
async fn the_end_of_the_board_ends_turns_and_keeps_what_was_said() {
    let bench = bench().await;
    let turn = bench.say("/slow 30").await.unwrap();
    let mut told = turn.follow();
    while !turn.events_after(0).iter().any(|event| event.name == "content") {
        told.changed().await.unwrap();
    }
    bench.turns.shutdown(Duration::ZERO).await;
    assert_eq!(turn.end().unwrap().status, TurnStatus::Cancelled);
    let messages = bench.turns.history(&bench.session).await.unwrap().messages;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(bench.say("x").await.unwrap_err(), TurnError::Stopping);
    bench.end().await;
}
