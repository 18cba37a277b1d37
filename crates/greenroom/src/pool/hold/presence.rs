//! Whether a worker counts as awake, and the place that it has in the queues.

use std::{hash::Hash, mem, task::Waker};

use super::{Hold, Posture, Source};
use crate::{
    Actor,
    pool::wake::{Errand, Rest},
    sync::{Ordering, fence},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Hold<A, K> {
    /// True when the worker is to start no further message.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.post.core.lifecycle.ended.load(Ordering::Acquire)
            || (self.seat.has_orders() && self.seat.starts_nothing())
    }

    /// Handlers usually waited when the last one of this worker went on, and do not any more: it
    /// counts as awake again. So does a worker that drains a shard, usual or not: the watch looks
    /// at its token only if it sees a worker awake.
    #[inline]
    pub(crate) fn counts_again(&mut self) {
        if self.post.posture == Posture::Uncounted
            && (!self.post.core.queue.wake.waits()
                || matches!(self.post.source, Source::Head { .. }))
        {
            self.wake_up();
        }
    }

    pub(crate) fn give_up_place(&mut self) {
        let source = mem::replace(&mut self.post.source, Source::None);
        self.post.core.release(self.post.worker, source);
    }

    pub(crate) fn wake_up(&mut self) {
        self.post.core.note_time();
        self.post.core.queue.wake.enter(&self.post.core.clock.bell);
        self.post.posture = Posture::Awake;
    }

    /// The caller has no message in hand and is not polled for a while.
    pub(crate) fn rest(&mut self) {
        self.leave();
        self.post.core.serve_waiters();
        self.post.core.lifecycle.tell_progress();
    }

    /// The worker does not count from here on, however it did.
    pub(super) fn leave(&mut self) {
        let (core, worker) = (&self.post.core, self.post.worker);
        let (wake, bell) = (&core.queue.wake, &core.clock.bell);
        match mem::replace(&mut self.post.posture, Posture::Suspended) {
            // A handler may panic when it is dropped, while it is suspended.
            Posture::Suspended => {}
            Posture::LyingDown => {
                wake.forget(worker, bell);
                core.take_back_handed(worker);
            }
            Posture::Lingering => {
                wake.look_again();
                wake.leave(bell);
            }
            Posture::Awake => wake.leave(bell),
            Posture::Uncounted => wake.pass_on(bell),
        }
    }

    /// The caller's handler was dropped, perhaps while it was suspended.
    pub(crate) fn return_to_work(&mut self) {
        if self.post.posture == Posture::Suspended {
            self.wake_up();
        }
    }

    /// The worker has found nothing, and steps aside once: senders fill the queues in that time,
    /// and need not wake a worker. True if it counts as one that looks again.
    pub(crate) fn begin_search(&mut self) -> bool {
        // Pairs with the fence in `grant_to_all`: a waiter sees what this worker has started, or
        // the worker sees `starved`. Otherwise a sender waits while the worker lingers.
        fence(Ordering::SeqCst);
        self.post.core.serve_waiters();
        let lingers = self.post.core.queue.wake.linger();
        if lingers {
            self.post.posture = Posture::Lingering;
        }
        lingers
    }

    /// It is back, and is about to look at every shard.
    pub(crate) fn end_search(&mut self, lingers: bool) {
        if lingers {
            self.post.core.queue.wake.look_again();
            self.post.posture = Posture::Awake;
        }
    }

    /// Enters the idle list. Says whether another worker was woken for what is ready.
    #[inline(always)]
    pub(crate) fn lie_down(&mut self, waker: Waker) -> (Rest, bool) {
        let (core, worker) = (&self.post.core, self.post.worker);
        let (wake, bell) = (&core.queue.wake, &core.clock.bell);
        let rest = wake.lie_down(worker, Some(waker));
        let woken = match mem::replace(&mut self.post.posture, Posture::LyingDown) {
            Posture::Uncounted => wake.pass_on_to(bell),
            _ => wake.leave_to(bell),
        };
        core.serve_waiters_at_rest();
        core.lifecycle.tell_progress();
        // Pairs with the store in `end`: the worker is in the idle list by now, so it sees the end,
        // or `all` in `end` finds it. Otherwise it sleeps for ever.
        if core.lifecycle.ended.load(Ordering::SeqCst) {
            wake.all();
        }
        if self.seat.has_orders() {
            wake.call(worker, bell);
        }
        (rest, woken.is_some_and(|woken| woken != worker))
    }

    /// For ready work in a queue.
    pub(crate) fn get_up(&mut self, errand: Errand) {
        self.post.core.note_time();
        match errand {
            Errand::Shard(index) => self.post.source = Source::Attending { index, alone: true },
            _ => self.rounds.join = true,
        }
    }
}
