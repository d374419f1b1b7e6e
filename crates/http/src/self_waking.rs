//! Polls a future that wakes itself again at once.
//!
//! hyper runs a connection and the handler of its request in one task with channels between them, so nearly every step of
//! one wakes the other: the task that is running. The runtime would queue that task again and wake another worker for it,
//! which costs more than reading a small call. Here the task polls itself again instead.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// How often a future is polled in a row before the runtime can run other tasks.
const MOST_IN_A_ROW: usize = 8;

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const WOKEN: u8 = 2;

/// A future that may wake itself.
pub(crate) struct SelfWaking<F> {
    future: Pin<Box<F>>,
    bell: Arc<SelfWaker>,
    waker: Waker,
}

/// The waker of the future.
#[derive(Default)]
struct SelfWaker {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for SelfWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // While the future is polled, the state alone is enough.
        if self.state.swap(WOKEN, Ordering::AcqRel) == WAITING {
            self.task.wake();
        }
    }
}

impl<F: Future> SelfWaking<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::<SelfWaker>::default();
        Self { future: Box::pin(future), waker: bell.clone().into(), bell }
    }

    /// The waker of the future; the same one from the first poll to the last.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl<F: Future> Future for SelfWaking<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, bell, waker } = self.get_mut();
        bell.task.register(context.waker());
        for _ in 0..MOST_IN_A_ROW {
            // A swap synchronises with the waker, as a store does not: the poll sees what was written before the wake.
            bell.state.swap(RUNNING, Ordering::AcqRel);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            let waits =
                bell.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire);
            if waits.is_ok() {
                return Poll::Pending;
            }
        }
        bell.state.swap(WAITING, Ordering::AcqRel);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    /// A task that counts how often it is woken.
    #[derive(Default)]
    pub(crate) struct Count(pub(crate) AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future that wakes itself this many times before it waits; returns the numbers of polls and of task wakes.
    fn polled(wakes: usize) -> (usize, usize) {
        let mut polls = 0;
        let mut future = SelfWaking::new(std::future::poll_fn(|context| {
            polls += 1;
            if polls <= wakes {
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        }));
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(future);
        (polls, count.0.load(Ordering::Relaxed))
    }

    #[test]
    fn what_wakes_itself_goes_on_without_its_task_being_woken() {
        assert_eq!(polled(0), (1, 0));
        assert_eq!(polled(1), (2, 0));
        assert_eq!(polled(MOST_IN_A_ROW - 1), (MOST_IN_A_ROW, 0));
    }

    #[test]
    fn what_never_stops_lets_others_go_first() {
        assert_eq!(polled(usize::MAX), (MOST_IN_A_ROW, 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        for _ in 0..2_000 {
            let (send, receive) = futures::channel::oneshot::channel();
            let sending = thread::spawn(move || send.send(7));
            let task = tokio_util::task::TaskTracker::new().spawn(SelfWaking::new(receive));
            assert_eq!(task.await.unwrap(), Ok(7));
            sending.join().unwrap().unwrap();
        }
    }
}
