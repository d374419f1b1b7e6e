//! Polls a future only when it was woken.
//!
//! hyper polls the handler of a request whenever it polls the connection, and once more after the body was read. Each time,
//! a call that waits for its server would poll everything that it waits for.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

struct WakeFlag {
    has_rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            self.task.wake();
        }
    }
}

/// The future, polled at first and then only after it was woken.
pub(crate) async fn if_woken<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let bell = Arc::new(WakeFlag { has_rung: AtomicBool::new(true), task: AtomicWaker::new() });
    let waker = Waker::from(bell.clone());
    std::future::poll_fn(move |context| {
        // Registered before the check, so that a wake after the check reaches the task.
        bell.task.register(context.waker());
        if bell.has_rung.swap(false, Ordering::AcqRel) {
            future.as_mut().poll(&mut Context::from_waker(&waker))
        } else {
            Poll::Pending
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::self_waking::tests::Count;

    #[test]
    fn who_was_not_woken_is_left_alone() {
        let (polls, kept) = (Cell::new(0), RefCell::new(None::<Waker>));
        let mut future = pin!(if_woken(std::future::poll_fn(|context| {
            polls.set(polls.get() + 1);
            kept.replace(Some(context.waker().clone()));
            if polls.get() == 3 { Poll::Ready(()) } else { Poll::Pending }
        })));
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        let context = &mut Context::from_waker(&waker);
        let woken = || count.0.load(Ordering::Relaxed);
        assert!(future.as_mut().poll(context).is_pending());
        assert!(future.as_mut().poll(context).is_pending());
        assert_eq!((polls.get(), woken()), (1, 0));
        let ring = || kept.borrow().as_ref().unwrap().wake_by_ref();
        ring();
        ring();
        assert_eq!(woken(), 1, "once until it was looked at");
        assert!(future.as_mut().poll(context).is_pending());
        ring();
        assert!(future.as_mut().poll(context).is_ready());
        assert_eq!((polls.get(), woken()), (3, 2));
    }

    #[test]
    fn who_wakes_itself_while_it_runs_is_polled_again() {
        let polls = Cell::new(0);
        let mut future = pin!(if_woken(std::future::poll_fn(|context| {
            polls.set(polls.get() + 1);
            context.waker().wake_by_ref();
            if polls.get() == 2 { Poll::Ready(()) } else { Poll::Pending }
        })));
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nobody_who_rings_from_another_thread_is_overheard() {
        let tasks = tokio_util::task::TaskTracker::new();
        for _ in 0..2000 {
            let (tell, told) = tokio::sync::oneshot::channel();
            let ringing = tasks.spawn(async move { tell.send(7) });
            assert_eq!(if_woken(told).await, Ok(7));
            ringing.await.unwrap().unwrap();
        }
    }
}
