//! Limits the number of connections and the time that a client may take.
//!
//! Anybody who can reach the port can open a connection and send nothing, before credentials are checked. So a request
//! must arrive completely within a time, a client must read its response, and the number of open connections is bounded.
//! When the bound is reached, or the process has no file descriptor left, connections are closed in the order of
//! [`Eviction`]: those that never sent a byte first, idle ones that were served last.
//!
//! There is no timer for a connection: one scan of all connections per second (a "look") finds the late ones, and a request
//! costs only a few stores into memory of its own connection. hyper's header timeout does not fit: it sets a timer for
//! each request, and it also closes connections that are only idle between requests.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::http::Version;
use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// The maximum number of connections, if the limit of file descriptors allows it. When it is reached, idle connections are
/// closed, the longest idle first; their clients reconnect when they need to. If all are busy, a new connection waits in
/// the kernel's accept queue, where it costs nothing. A response that refuses it would need a connection itself.
const MAX_CONNECTIONS: usize = 10_000;
/// The minimum number of connections, however low the limit of file descriptors is.
const MIN_CONNECTIONS: usize = 8;
/// File descriptors that are reserved for the store, MCP servers and model providers.
const RESERVED_FILES: std::ops::RangeInclusive<usize> = 16..=1024;
/// From the accept to the first byte. Clients that open connections in advance use them sooner.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(10);
/// From the first byte of a request to the end of its head.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// From the head of a request to the end of its body. In total, so that a slow trickle of bytes does not extend it.
const BODY_WITHIN: Duration = Duration::from_mins(1);
/// How long a client may read nothing of a response that is being sent.
const TAKE_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// One in this many connections is closed when there are too many, so that not every new one needs a scan.
const SHARE_THAT_LEAVES: usize = 100;
/// The minimum number of connections to close when no file descriptor is left.
const FILES_TO_FREE: usize = 8;
/// After this many looks, a connection that never sent a whole request head may be closed for others.
const SLOW_HEAD: u32 = 2;
/// The number of looks between two warnings that the bound is reached.
const WARN_AFTER: u32 = 60;

/// The value of a time that is not being measured.
const NEVER: u32 = 0;

/// The limits of connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    pub(crate) most: usize,
    pub(crate) first_byte_within: Duration,
    pub(crate) head_within: Duration,
    pub(crate) body_within: Duration,
    pub(crate) take_within: Duration,
    pub(crate) look_every: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: MAX_CONNECTIONS.min(most_by_files()),
            first_byte_within: FIRST_BYTE_WITHIN,
            head_within: HEAD_WITHIN,
            body_within: BODY_WITHIN,
            take_within: TAKE_WITHIN,
            look_every: LOOK_EVERY,
        }
    }
}

/// The limit of open files without those in use and a reserve for the store, MCP servers and model providers.
fn most_by_files() -> usize {
    let Some(limit) = file_limit() else { return MAX_CONNECTIONS };
    let in_use = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let reserve = (limit / 4).clamp(*RESERVED_FILES.start(), *RESERVED_FILES.end());
    limit.saturating_sub(in_use + reserve).max(MIN_CONNECTIONS)
}

/// The process's limit of open files; `None` when there is none.
fn file_limit() -> Option<usize> {
    usize::try_from(getrlimit(Resource::Nofile).current?).ok()
}

/// Which connections are closed for others, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Eviction {
    /// Never sent a byte; the oldest first.
    Silent,
    /// Has been sending its first request head for a while.
    Unserved,
    /// Was served and waits for its next request. Its client can reconnect.
    Idle,
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ConnectionLimits,
    /// Counts looks and serves as the clock here. Never [`NEVER`].
    clock: AtomicU32,
    states: Mutex<HashMap<u64, Arc<ConnectionState>>>,
    next: AtomicU64,
    left: Notify,
    /// The current bound: lower than the limit for a while after file descriptors ran out.
    most: AtomicUsize,
    warned_at: AtomicU32,
    files_warned_at: AtomicU32,
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let most = AtomicUsize::new(limits.most);
        Arc::new(Self {
            limits,
            most,
            clock: AtomicU32::new(NEVER + 1),
            states: Mutex::default(),
            next: AtomicU64::new(0),
            left: Notify::new(),
            warned_at: AtomicU32::new(NEVER),
            files_warned_at: AtomicU32::new(NEVER),
        })
    }

    fn states(&self) -> MutexGuard<'_, HashMap<u64, Arc<ConnectionState>>> {
        self.states.lock()
    }

    fn now(&self) -> u32 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Waits until there is room for one more connection.
    pub(crate) async fn place(self: &Arc<Self>) -> ConnectionPermit {
        loop {
            {
                let mut states = self.states();
                if states.len() < self.most.load(Ordering::Relaxed) {
                    let number = self.next.fetch_add(1, Ordering::Relaxed);
                    let connection = Arc::new(ConnectionState::new(self.clone()));
                    states.insert(number, connection.clone());
                    return ConnectionPermit { number, connection };
                }
            }
            let most = self.limits.most;
            let evicted = self.evict((most / SHARE_THAT_LEAVES).max(1));
            if self.may_warn(&self.warned_at) {
                tracing::warn!(
                    most,
                    closing = evicted,
                    "the maximum number of connections is reached; silent and idle ones are closed"
                );
            }
            // A connection that is busy now may be idle at the next look.
            let _or_else = tokio::time::timeout(self.limits.look_every, self.left.notified()).await;
        }
    }

    /// Closes up to `count` connections in the order of [`Eviction`]; returns how many.
    fn evict(&self, count: usize) -> usize {
        let now = self.now();
        let states = self.states();
        let mut candidates: Vec<_> = states
            .iter()
            .filter_map(|(number, connection)| {
                let (eviction, since) = connection.eviction(now)?;
                Some(((eviction, since, *number), connection))
            })
            .collect();
        candidates.sort_unstable_by_key(|(order, _)| *order);
        for ((eviction, ..), connection) in candidates.iter().take(count) {
            match eviction {
                Eviction::Silent | Eviction::Unserved => connection.tell(CloseOrder::Go),
                Eviction::Idle => {
                    // A request that has just begun is still answered, if its head arrives in time.
                    connection.heard_at.store(now, Ordering::Relaxed);
                    connection.tell(CloseOrder::Leave);
                }
            }
        }
        candidates.len().min(count)
    }

    /// Frees file descriptors after the system had none for a new connection; returns when another accept may succeed.
    pub(crate) async fn files_ran_out(&self, error: &io::Error) {
        let open = self.states().len();
        let to_free = (open / SHARE_THAT_LEAVES).max(FILES_TO_FREE);
        let evicted = self.evict(to_free);
        // Other parts of the process need more files now: lower the bound, so that they do not run out again at once.
        self.most.store(open.saturating_sub(to_free).max(1), Ordering::Relaxed);
        if self.may_warn(&self.files_warned_at) {
            tracing::error!(
                %error,
                limit = file_limit(),
                connections = open,
                closing = evicted,
                "no file descriptor is left for a new connection; silent and idle connections are closed. \
                 Raise the limit with `ulimit -n`, or with `LimitNOFILE=` in the systemd unit"
            );
        }
        let _or_else = tokio::time::timeout(self.limits.look_every, self.left.notified()).await;
    }

    /// Logs that accepting failed for another reason, and waits a moment.
    pub(crate) async fn accept_failed(&self, error: &io::Error) {
        if self.may_warn(&self.files_warned_at) {
            tracing::error!(%error, "a connection cannot be accepted");
        }
        tokio::time::sleep(self.limits.look_every).await;
    }

    /// Whether the last warning of this kind was long enough ago.
    fn may_warn(&self, warned_at: &AtomicU32) -> bool {
        let (now, last) = (self.now(), warned_at.load(Ordering::Relaxed));
        let may_warn = last == NEVER || now.wrapping_sub(last) >= WARN_AFTER;
        if may_warn {
            warned_at.store(now, Ordering::Relaxed);
        }
        may_warn
    }

    /// Scans all connections for late ones, at intervals.
    pub(crate) async fn watch(&self) {
        loop {
            tokio::time::sleep(self.limits.look_every).await;
            self.look();
        }
    }

    pub(crate) fn look(&self) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        for connection in self.states().values() {
            connection.check_times(now);
        }
        // After file descriptors ran out, the bound is raised again slowly.
        let most = self.most.load(Ordering::Relaxed);
        if most < self.limits.most {
            let more = (self.limits.most / SHARE_THAT_LEAVES).max(1);
            self.most.store((most + more).min(self.limits.most), Ordering::Relaxed);
        }
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<Arc<ConnectionState>> {
        self.states().values().cloned().collect()
    }

    /// Whether more time than `within` has passed, counted in looks.
    fn is_over(&self, since: u32, now: u32, within: Duration) -> bool {
        let looks = within.as_nanos().div_ceil(self.limits.look_every.as_nanos().max(1));
        since != NEVER && u128::from(now.wrapping_sub(since)) > looks
    }
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    connections: Arc<Connections>,
    /// Whether any byte was received, and whether a whole request head was.
    has_spoken: AtomicBool,
    was_served: AtomicBool,
    /// When the current request head began. Bytes that arrive together with an earlier request do not count: such a
    /// connection is treated as idle.
    heard_at: AtomicU32,
    /// When the current body began; HTTP/1 only.
    body_at: AtomicU32,
    /// The start of a body that took too long.
    late: AtomicU32,
    /// Since when the client has not read the bytes that were sent.
    stuck_at: AtomicU32,
    /// The number of requests whose response is not yet sent completely.
    open: AtomicU32,
    idle_at: AtomicU32,
    /// HTTP/2 has frames that belong to no request, so received bytes do not mean that a request begins.
    is_http2: AtomicBool,
    /// Whether the other end is on this machine.
    is_local: AtomicBool,
    order: AtomicU8,
    task: OnceLock<Waker>,
}

/// How a connection must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseOrder {
    /// After the response to the current request.
    Leave,
    /// At once.
    Go,
}

impl ConnectionState {
    fn new(connections: Arc<Connections>) -> Self {
        let now = connections.now();
        Self {
            connections,
            has_spoken: AtomicBool::new(false),
            was_served: AtomicBool::new(false),
            heard_at: AtomicU32::new(now),
            body_at: AtomicU32::new(NEVER),
            late: AtomicU32::new(NEVER),
            stuck_at: AtomicU32::new(NEVER),
            open: AtomicU32::new(0),
            idle_at: AtomicU32::new(now),
            is_http2: AtomicBool::new(false),
            is_local: AtomicBool::new(false),
            order: AtomicU8::new(0),
            task: OnceLock::new(),
        }
    }

    /// Sets whether the other end is on this machine.
    pub(crate) fn set_local(&self, is_local: bool) {
        self.is_local.store(is_local, Ordering::Relaxed);
    }

    /// Whether the other end is on this machine. It may be a proxy.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local.load(Ordering::Relaxed)
    }

    /// Sets the task to wake when a [`CloseOrder`] is given.
    pub(crate) fn set_task(&self, task: Waker) {
        let _it_is_known = self.task.set(task);
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }

    fn tell(&self, order: CloseOrder) {
        let number = match order {
            CloseOrder::Leave => 1,
            CloseOrder::Go => 2,
        };
        self.order.fetch_max(number, Ordering::Relaxed);
        self.wake();
    }

    pub(crate) fn told(&self) -> Option<CloseOrder> {
        match self.order.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(CloseOrder::Leave),
            _ => Some(CloseOrder::Go),
        }
    }

    /// Waits for a [`CloseOrder`] of at least this urgency. Only for the task that runs the connection.
    pub(crate) async fn order(&self, least: CloseOrder) -> CloseOrder {
        std::future::poll_fn(|_| match (self.told(), least) {
            (Some(CloseOrder::Go), _) => Poll::Ready(CloseOrder::Go),
            (Some(CloseOrder::Leave), CloseOrder::Leave) => Poll::Ready(CloseOrder::Leave),
            (Some(CloseOrder::Leave), CloseOrder::Go) | (None, _) => Poll::Pending,
        })
        .await
    }

    fn check_times(&self, now: u32) {
        let connections = &self.connections;
        let is_over = |since: &AtomicU32, within| {
            connections.is_over(since.load(Ordering::Relaxed), now, within)
        };
        let head_within = if self.has_spoken.load(Ordering::Relaxed) {
            connections.limits.head_within
        } else {
            connections.limits.first_byte_within
        };
        if is_over(&self.heard_at, head_within)
            || is_over(&self.stuck_at, connections.limits.take_within)
        {
            self.tell(CloseOrder::Go);
        }
        if is_over(&self.body_at, connections.limits.body_within) {
            self.late.store(self.body_at.load(Ordering::Relaxed), Ordering::Relaxed);
            self.wake();
        }
    }

    /// Whether the connection may be closed for others: in which class, and since when it is in it.
    fn eviction(&self, now: u32) -> Option<(Eviction, u32)> {
        if self.told().is_some() {
            return None;
        }
        let heard_at = self.heard_at.load(Ordering::Relaxed);
        if !self.has_spoken.load(Ordering::Relaxed) {
            return Some((Eviction::Silent, heard_at));
        }
        if !self.was_served.load(Ordering::Relaxed) {
            let is_slow = now.wrapping_sub(heard_at) >= SLOW_HEAD;
            return is_slow.then_some((Eviction::Unserved, heard_at));
        }
        let is_idle = self.open.load(Ordering::Relaxed) == 0
            && heard_at == NEVER
            && self.stuck_at.load(Ordering::Relaxed) == NEVER;
        is_idle.then(|| (Eviction::Idle, self.idle_at.load(Ordering::Relaxed)))
    }

    #[cfg(test)]
    pub(crate) fn has_spoken(&self) -> bool {
        self.has_spoken.load(Ordering::Relaxed)
    }

    /// Whether the client must continue a request that it began, or read a response.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self) -> bool {
        [&self.heard_at, &self.body_at, &self.stuck_at]
            .iter()
            .any(|since| since.load(Ordering::Relaxed) != NEVER)
    }

    fn note_received(&self) {
        if !self.has_spoken.load(Ordering::Relaxed) {
            self.has_spoken.store(true, Ordering::Relaxed);
            // The time of the head begins with its first byte.
            self.heard_at.store(self.connections.now(), Ordering::Relaxed);
        }
        if self.heard_at.load(Ordering::Relaxed) == NEVER
            && self.open.load(Ordering::Relaxed) == 0
            && !self.is_http2.load(Ordering::Relaxed)
        {
            self.heard_at.store(self.connections.now(), Ordering::Relaxed);
        }
    }

    fn note_sent(&self, is_taken: bool) {
        let is_stuck = self.stuck_at.load(Ordering::Relaxed) != NEVER;
        if is_stuck == is_taken {
            let since = if is_taken { NEVER } else { self.connections.now() };
            self.stuck_at.store(since, Ordering::Relaxed);
        }
    }

    /// Notes that a request head was read.
    pub(crate) fn begin_request(self: Arc<Self>, version: Version) -> RequestInProgress {
        if version == Version::HTTP_2 {
            self.is_http2.store(true, Ordering::Relaxed);
        }
        self.was_served.store(true, Ordering::Relaxed);
        self.heard_at.store(NEVER, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        RequestInProgress(self)
    }

    /// Notes that the body of a request begins. Only for HTTP/1, which has one request at a time.
    pub(crate) fn body_begins(&self) -> BodyBegun {
        let now = self.connections.now();
        self.body_at.store(now, Ordering::Relaxed);
        BodyBegun(now)
    }

    pub(crate) fn body_ends(&self) {
        self.body_at.store(NEVER, Ordering::Relaxed);
    }

    /// Whether this body takes too long. The connection's task is woken when that happens.
    pub(crate) fn is_late(&self, body: BodyBegun) -> bool {
        self.late.load(Ordering::Relaxed) == body.0
    }
}

/// When the reading of a body began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyBegun(u32);

/// A request until its response is sent completely.
#[derive(Debug)]
pub(crate) struct RequestInProgress(Arc<ConnectionState>);

impl RequestInProgress {
    pub(crate) fn connection(&self) -> &ConnectionState {
        &self.0
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.idle_at.store(connection.connections.now(), Ordering::Relaxed);
        connection.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of a connection in [`Connections`]; dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    number: u64,
    pub(crate) connection: Arc<ConnectionState>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let connections = &self.connection.connections;
        connections.states().remove(&self.number);
        connections.left.notify_one();
    }
}

/// A stream that notes reads and writes in its [`ConnectionState`].
pub(crate) struct ObservedStream<S> {
    pub(crate) stream: S,
    pub(crate) connection: Arc<ConnectionState>,
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, connection } = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            connection.note_received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> ObservedStream<S> {
    fn note<T>(&self, sent: Poll<T>) -> Poll<T> {
        self.connection.note_sent(sent.is_ready());
        sent
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(sent)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
