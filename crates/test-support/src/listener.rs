//! The listener of the server, which can accept connections and then ignore them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};

use crate::fault::Fault;
use crate::state::Shared;

#[derive(Debug)]
pub(crate) struct ScriptedListener {
    pub(crate) socket: TcpListener,
    pub(crate) shared: Arc<Shared>,
    /// Connections that hang; they are closed when the next one is served.
    pub(crate) parked: Vec<TcpStream>,
}

impl Listener for ScriptedListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let Ok((stream, address)) = self.socket.accept().await else {
                // Probably out of file descriptors: others may be closed soon.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            if self.shared.current_fault() == Some(Fault::HangAtConnect) {
                self.parked.push(stream);
                continue;
            }
            self.parked.clear();
            stream.set_nodelay(true).ok();
            return (stream, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}
