//! The actor that the library runs for a coordinator.
//!
//! Commands are its messages. Notices of the pool lie in its [`NoticeQueue`]. A `Down` signal from
//! the pool itself says that there are some: it comes before every message and has no other
//! meaning, since a pool's end is a notice like the others.

use std::sync::Arc;

use super::{Coordinator, PoolNotice, notice_queue::NoticeQueue};
use crate::{Actor, Answer, AnyAddress, Context, Delivery, ExitReason, PoolAdmin, context::Loan};

/// The actor around a coordinator.
pub(crate) struct CoordinatorDriver<A: Actor, C: Coordinator<A>> {
    coordinator: C,
    pool: PoolAdmin<A>,
    /// The pool, as the party that signals.
    notifier: AnyAddress,
    notices: Arc<NoticeQueue>,
    /// The context of the coordinator, to lend this actor's to.
    inner: Option<Context<C>>,
}

/// All that a call of the coordinator takes.
type DriverParts<'a, A, C> = (&'a mut C, &'a PoolAdmin<A>, Loan<'a, CoordinatorDriver<A, C>, C>);

impl<A: Actor, C: Coordinator<A>> CoordinatorDriver<A, C> {
    pub(super) fn new(
        coordinator: C,
        pool: PoolAdmin<A>,
        notifier: AnyAddress,
        notices: Arc<NoticeQueue>,
    ) -> Self {
        Self { coordinator, pool, notifier, notices, inner: None }
    }

    fn inside<'a>(&'a mut self, cx: &'a mut Context<Self>) -> DriverParts<'a, A, C> {
        let inner = self.inner.get_or_insert_with(|| cx.inner());
        (&mut self.coordinator, &self.pool, cx.lend(inner))
    }

    /// Handles all notices of the pool. The pool's end is the coordinator's.
    async fn listen(&mut self, cx: &mut Context<Self>) {
        while let Some(notice) = self.notices.next() {
            let last = matches!(notice, PoolNotice::Stopped { .. });
            let (coordinator, pool, mut inner) = self.inside(cx);
            let heard = coordinator.notice(notice, pool, &mut inner).await;
            drop(inner);
            end_where_failed(&heard, cx);
            if last {
                cx.exit(ExitReason::Shutdown);
            }
            if cx.is_ending() {
                return;
            }
        }
    }
}

/// The error of a coordinator ends it, and the pool with it.
fn end_where_failed<A: Actor, C: Coordinator<A>, T>(
    result: &Result<T, C::Error>,
    cx: &mut Context<CoordinatorDriver<A, C>>,
) {
    if let Err(error) = result {
        cx.exit(ExitReason::failed(error.clone()));
    }
}

impl<A: Actor, C: Coordinator<A>> Actor for CoordinatorDriver<A, C> {
    type Message = C::Command;
    type Reply = C::Reply;
    type Error = C::Error;

    async fn handle(
        &mut self,
        command: C::Command,
        cx: &mut Context<Self>,
    ) -> Result<C::Reply, C::Error> {
        let (coordinator, pool, mut cx) = self.inside(cx);
        coordinator.command(command, pool, &mut cx).await
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<C::Command, C::Reply, C::Error>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<C::Reply>, C::Error> {
        let (coordinator, pool, mut inner) = self.inside(cx);
        let answer = coordinator.receive(delivery, pool, &mut inner).await;
        drop(inner);
        end_where_failed(&answer, cx);
        answer
    }

    async fn down(&mut self, who: &AnyAddress, reason: &ExitReason, cx: &mut Context<Self>) {
        if *who == self.notifier {
            return self.listen(cx).await;
        }
        let (coordinator, pool, mut inner) = self.inside(cx);
        let heard = coordinator.down(who, reason, pool, &mut inner).await;
        drop(inner);
        end_where_failed(&heard, cx);
    }
}
