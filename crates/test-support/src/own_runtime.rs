//! A runtime per server, so that stopping the server closes all its connections.

use std::fmt::Debug;
use std::net::TcpListener as StdTcpListener;

use axum::Router;
use axum::serve::Listener;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Serves until told to stop, then drops the runtime and every connection with it.
pub(crate) fn serve<L: Listener<Addr: Debug>>(
    listener: StdTcpListener,
    listening: impl FnOnce(TcpListener) -> L,
    service: Router,
    ready: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let socket = TcpListener::from_std(listener).expect("a runtime is there");
        let listener = listening(socket);
        ready.send(()).ok();
        tokio::select! {
            _ = stopped => {}
            served = axum::serve(listener, service) => served.expect("serving does not end"),
        }
    });
}
