//! A server that is slow to answer: connections are held until the test releases them.

use std::time::Duration;

use switchboard_test_support::wait_until;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Debug)]
pub(crate) struct Gate {
    port: u16,
    is_open: watch::Sender<bool>,
    waiting: watch::Receiver<usize>,
    /// Accepts; dropped with the gate, as its connections are.
    _accepting: JoinSet<()>,
}

impl Gate {
    /// A closed gate before this port.
    pub(crate) async fn before(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_open, opened) = watch::channel(false);
        let (arrived, waiting) = watch::channel(0);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                arrived.send_modify(|count| *count += 1);
                let mut opened = opened.clone();
                connections.spawn(async move {
                    if opened.wait_for(|is_open| *is_open).await.is_ok()
                        && let Ok(mut far) = TcpStream::connect(("127.0.0.1", target)).await
                    {
                        copy_bidirectional(&mut near, &mut far).await.ok();
                    }
                });
            }
        });
        Self { port, is_open, waiting, _accepting: accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Waits until a connection is held.
    pub(crate) async fn reached(&self, patience: Duration) {
        wait_until(patience, async || (*self.waiting.borrow() > 0).then_some(())).await;
    }

    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }
}
