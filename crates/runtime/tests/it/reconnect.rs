//! Servers that are connected anew on request.

use std::time::Duration;

use pretty_assertions::assert_eq;
use switchboard_model::{ServerName, ServerState};
use switchboard_test_support::{Fault, Tool};

use crate::support::{board, dynamic, end, names, server, with, yaml};

#[tokio::test]
async fn the_tools_of_a_server_are_there_when_a_reconnection_is_answered() {
    for fault in [Fault::Refuse, Fault::DelayInitialize(Duration::from_secs(1))] {
        let crm = server([Tool::echo("a"), Tool::echo("b")]).await;
        crm.set_fault(fault.clone()).await;
        let board = board(&yaml(&[], &[with(&dynamic("crm", &crm), "required: false")])).await;
        if fault == Fault::Refuse {
            assert_eq!(names(&board), Vec::<String>::new());
            crm.clear_fault().await;
        }
        let status = board.reconnect(&ServerName::new("crm")).await.unwrap();
        assert_eq!(status.state, ServerState::Ready, "{fault:?}");
        assert_eq!(names(&board), ["crm.a", "crm.b"], "{fault:?}");
        end(&board).await;
    }
}
