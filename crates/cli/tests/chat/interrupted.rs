//! Ctrl-C cancels the running turn; without one it ends the program.

use pretty_assertions::assert_eq;

use crate::program::Program;

#[tokio::test]
async fn a_turn_is_cancelled_and_the_chat_goes_on() {
    for program in Program::both().await {
        let mut chat = program.talk(&[]);
        chat.type_line("/slow 60");
        chat.answers("1 2 3 ").await;
        chat.press_control_c();
        chat.says("[cancelled; what was said so far is kept]").await;
        chat.type_line("/say still here");
        chat.answers("still here").await;
        assert_eq!(chat.close().await.code(), Some(0), "{}", chat.stderr());
        let session = chat.stderr();
        let session = session.split_once("[session ").unwrap().1.split_once(':').unwrap().0;
        let history = program.run(&["session", "history", session]).expect(0).stdout;
        let is_kept = history.contains("> /slow 60\n1 2 3 ") && history.ends_with("still here\n");
        assert!(is_kept, "{}: {history}", program.way());
    }
}

#[tokio::test]
async fn without_a_turn_it_ends_the_program() {
    for program in Program::both().await {
        let mut chat = program.talk(&[]);
        chat.type_line("/say hello");
        chat.says("[demo demo: ").await;
        chat.press_control_c();
        assert_eq!(chat.ended().await.code(), Some(0), "{}", chat.stderr());
        assert!(chat.stderr().contains("` continues it]"), "{}", chat.stderr());
    }
}

#[tokio::test]
async fn a_single_message_that_is_cancelled_says_so_in_its_code() {
    let program = Program::alone().await;
    let mut chat = program.talk(&["-m", "/slow 60"]);
    chat.answers("1 2 3 ").await;
    chat.press_control_c();
    assert_eq!(chat.ended().await.code(), Some(130), "{}", chat.stderr());
}

#[tokio::test]
async fn tools_that_are_switched_now_are_seen_by_the_turn_that_runs() {
    let program = Program::alone().await.served().await;
    program.run(&["session", "new", "work"]).expect(0);
    let mut chat = program.talk(&["--session", "work"]);
    chat.type_line("/slow 3");
    chat.answers("1 2 3 ").await;
    program.run(&["session", "disable", "work", "shop", "--now"]).expect(0);
    chat.says("[the tools changed: the model is called again with those of revision 2]").await;
    assert!(chat.stdout().contains("[the answer above is discarded]\n"), "{}", chat.stdout());
    chat.type_line("//tools");
    chat.answers("I see no tools in this session.").await;
    assert_eq!(chat.close().await.code(), Some(0));
}
