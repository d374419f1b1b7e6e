//! A load balancer without sticky sessions: each request goes to the next address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The largest head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// A proxy at a free port of 127.0.0.1, until it is dropped. A connection carries one request, so that a client that keeps
/// its connections open is moved all the same. An address that takes no connection is skipped.
#[derive(Debug)]
pub struct RoundRobin {
    address: SocketAddr,
    rotation: Arc<Rotation>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Rotation {
    addresses: Mutex<Vec<String>>,
    next: AtomicUsize,
    /// The requests that each address was sent.
    sent: Mutex<Vec<(String, usize)>>,
}

impl RoundRobin {
    /// Serves in front of these addresses (`host:port`, or URLs of that form).
    pub async fn start<S: AsRef<str>>(addresses: impl IntoIterator<Item = S>) -> Self {
        let addresses: Vec<_> = addresses.into_iter().map(|it| bare(it.as_ref())).collect();
        let sent = addresses.iter().map(|address| (address.clone(), 0)).collect();
        let rotation = Arc::new(Rotation {
            addresses: Mutex::new(addresses),
            next: AtomicUsize::new(0),
            sent: Mutex::new(sent),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let accepting = accept(listener, rotation.clone(), stop.clone(), tasks.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { address, rotation, _stop: stop.drop_guard() }
    }

    /// The address of a path, such as `/mcp`.
    pub fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends no further request to an address.
    pub fn remove(&self, address: &str) {
        let address = bare(address);
        self.rotation.addresses.lock().retain(|known| *known != address);
    }

    /// How many requests each address was sent.
    pub fn sent(&self) -> Vec<usize> {
        self.rotation.sent.lock().iter().map(|(_, count)| *count).collect()
    }
}

fn bare(address: &str) -> String {
    address.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

async fn accept(
    listener: TcpListener,
    rotation: Arc<Rotation>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    while let Ok((client, _)) = listener.accept().await {
        let passing = pass(client, rotation.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(passing));
    }
}

/// Passes one request and its response.
async fn pass(mut client: TcpStream, rotation: Arc<Rotation>) {
    client.set_nodelay(true).ok();
    let Some((head, rest)) = read_head(&mut client).await else { return };
    let Some(mut server) = rotation.connect().await else {
        let none = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        client.write_all(none).await.ok();
        return;
    };
    let lines = head.split("\r\n").filter(|line| {
        !line.get(..11).is_some_and(|name| name.eq_ignore_ascii_case("connection:"))
    });
    let head = lines.collect::<Vec<_>>().join("\r\n");
    let head = format!("{head}\r\nConnection: close\r\n\r\n");
    let sent = async {
        server.write_all(head.as_bytes()).await?;
        server.write_all(&rest).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await
    };
    // Either side may have gone.
    sent.await.ok();
}

/// The head of a request without its empty line, and what was read after it.
async fn read_head(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            read.truncate(end);
            return Some((String::from_utf8(read).ok()?, rest));
        }
        if read.len() > MAX_HEAD || client.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

impl Rotation {
    async fn connect(&self) -> Option<TcpStream> {
        let addresses = self.addresses.lock().clone();
        for _ in 0..addresses.len() {
            let at = self.next.fetch_add(1, Ordering::Relaxed) % addresses.len();
            let address = addresses.get(at)?;
            if let Ok(server) = TcpStream::connect(address).await {
                server.set_nodelay(true).ok();
                if let Some(place) = self.sent.lock().iter_mut().find(|(to, _)| to == address) {
                    place.1 += 1;
                }
                return Some(server);
            }
        }
        None
    }
}
