//! A worker goes while messages wait in its own mailbox, and a party reads the state of the pool,
//! or the pool ends, between two of the steps.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll, Wake, Waker},
};

use tokio::sync::mpsc;

use super::without_tasks::{Handlers, Handles, without_tasks};
use crate::{
    ExitReason, Pool,
    pool::{
        core::{drain::give_back_queued, mail::push_to, shut::count_accepted},
        frame::{
            AnyCore,
            end::end,
            figures::ledger,
            gate::close,
            members::{disable, dismiss_one},
            rest::lay_off,
        },
        left_over::into_messages,
        outgoing::Outgoing,
    },
};

/// A pool whose two workers have no task any more. A message fills the mailbox of the first.
async fn lifeless() -> Handlers {
    let core = without_tasks(Pool::new(|_| Handles).workers(2).mailbox(1)).await;
    let mailbox = core.mailbox(0);
    mailbox.try_reserve().unwrap();
    core.queue.permits.try_take(1, &*core).unwrap();
    push_to(&core, &mailbox, &mut Outgoing::new(1, None)).unwrap();
    core
}

/// Runs a function once it is notified that there is no room.
struct OnceTold<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for OnceTold<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Waits for a place in the first mailbox, and then runs the function.
async fn told_of_the_first_mailbox(
    core: &Handlers,
    what: impl Fn() + Send + Sync + 'static,
    goes: impl FnOnce(),
) {
    let mailbox = core.mailbox(0);
    let mut waits = pin!(mailbox.reserve());
    let waker = Waker::from(Arc::new(OnceTold(what)));
    assert!(waits.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
    goes();
    let told = waits.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
    assert!(matches!(told, Poll::Ready(Err(_))), "the worker has gone");
}

/// A stop that checked at that moment found everything done, and ended the pool too early.
#[tokio::test]
async fn a_message_counts_as_accepted_while_the_mailbox_of_a_worker_that_goes_is_cleared() {
    let core = lifeless().await;
    let accepted = Arc::new(AtomicU64::new(0));
    let look = {
        let (core, accepted) = (core.clone(), accepted.clone());
        move || accepted.store(count_accepted(&core), Ordering::Relaxed)
    };
    told_of_the_first_mailbox(&core, look, || {
        assert!(disable(&core.erased(), 0, &ExitReason::Normal));
    })
    .await;
    assert_eq!(accepted.load(Ordering::Relaxed), 1);
    assert!(core.depth() == 1 && ledger(&*core).ledger_holds());
}

/// The message went to a queue that nothing checked any more, and its caller waited.
#[tokio::test]
async fn mail_of_a_worker_that_rests_and_is_removed_as_the_pool_ends_is_given_back() {
    let core = lifeless().await;
    assert!(lay_off(&*core, 0));
    let end = {
        let core = core.clone();
        move || {
            close(&*core);
            end(&*core);
            give_back_queued(&core);
        }
    };
    told_of_the_first_mailbox(&core, end, || {
        dismiss_one(&core.erased(), 0, &mpsc::unbounded_channel().0).unwrap();
    })
    .await;
    assert_eq!(into_messages(core.left_over.take()), [1]);
    assert!(core.depth() == 0 && ledger(&*core).ledger_holds());
}
