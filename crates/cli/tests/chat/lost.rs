//! Broken connections, and instances that stop.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::program::Program;

/// Passes everything on, until it is told to cut all connections that there are.
struct Cutter {
    url: String,
    cut: Arc<Notify>,
    tasks: TaskTracker,
}

impl Cutter {
    async fn before(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, tasks) = (Arc::new(Notify::new()), TaskTracker::new());
        let (target, told, tracker) =
            (url.trim_start_matches("http://").to_owned(), cut.clone(), tasks.clone());
        tasks.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let Ok(mut server) = TcpStream::connect(&target).await else { break };
                let told = told.clone();
                tracker.spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        () = told.notified() => {}
                    }
                });
            }
        });
        Self { url: format!("http://{address}"), cut, tasks }
    }
}

#[tokio::test]
async fn a_turn_is_followed_over_broken_connections_without_a_gap() {
    let program = Program::alone().await.served().await;
    let cutter = Cutter::before(&program.serve.as_ref().unwrap().url).await;
    let words = ["chat", "-m", "/slow 3", "--url", &cutter.url];
    let mut chat = crate::program::Talking::start(program.home.command(&words));
    for word in ["2 ", "8 "] {
        chat.answers(word).await;
        cutter.cut.notify_waiters();
    }
    assert_eq!(chat.ended().await.code(), Some(0), "{}", chat.stderr());
    let text: String = chat.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 done.");
    assert_eq!(chat.stderr().matches("the connection was lost").count(), 2, "{}", chat.stderr());
    drop(cutter.tasks);
}

#[tokio::test]
async fn an_instance_that_is_gone_is_given_up_after_a_while() {
    let mut program = Program::alone().await.served().await;
    let mut chat = program.talk(&["-m", "/slow 60"]);
    chat.answers("1 2 3 ").await;
    program.serve = None;
    assert_eq!(chat.ended().await.code(), Some(4), "{}", chat.stderr());
    let said = chat.stderr();
    assert!(
        said.contains("cannot reach") && said.contains("switchboard session history"),
        "{said}"
    );
}
