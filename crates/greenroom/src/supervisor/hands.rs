//! Carries out the plan's orders, each in its own task, so that no child keeps its supervisor from
//! answering.
//!
//! A child has one order at a time. The next one drops the future of the former and waits until
//! that is gone, so that no two of them ever run at once; the result of the former is ignored.

use std::{collections::HashMap, future::pending, sync::Arc};

use greenroom_queue::discard::discard;
use tokio::{
    sync::Mutex,
    task::{AbortHandle, JoinError, JoinSet},
    time::Instant,
};

use super::{
    child::{ChildFuture, ChildId},
    plan::Order,
};
use crate::pool::StopSummary;

/// The result of an order: the summary of a stop, or why a start failed or which panic occurred.
pub(super) type OrderOutcome = Result<Option<StopSummary>, String>;

/// Orders in progress. Dropping it drops them all.
#[derive(Default)]
pub(super) struct Hands {
    tasks: JoinSet<OrderOutcome>,
    /// The current order of each child.
    in_hand: HashMap<ChildId, InHand>,
}

pub(super) struct InHand {
    order: Order,
    since: Instant,
    task: AbortHandle,
    /// Held by the task while it works, even while it is being aborted.
    turn: Arc<Mutex<()>>,
}

impl Hands {
    /// Lets `work` carry out an order. `work` learns since when the order is in progress: a
    /// repeated order keeps its time.
    pub(super) fn take_up(
        &mut self,
        order: Order,
        work: impl FnOnce(Instant) -> ChildFuture<OrderOutcome> + Send + 'static,
    ) {
        let former = self.give_up(order.child());
        let same = former.as_ref().filter(|former| former.order == order);
        let since = same.map_or_else(Instant::now, |same| same.since);
        let turn = former.map(|former| former.turn).unwrap_or_default();
        let its_turn = turn.clone().lock_owned();
        let task = self.tasks.spawn(async move {
            // Dropped last, after the work.
            let _turn = its_turn.await;
            work(since).await
        });
        self.in_hand.insert(order.child(), InHand { order, since, task, turn });
    }

    /// Drops the current order of this child.
    pub(super) fn give_up(&mut self, child: ChildId) -> Option<InHand> {
        self.in_hand.remove(&child).inspect(|in_hand| in_hand.task.abort())
    }

    /// The next finished order, and its result.
    ///
    /// # Cancel safety
    /// A dropped future has consumed nothing.
    pub(super) async fn next(&mut self) -> (Order, OrderOutcome) {
        while let Some(joined) = self.tasks.join_next_with_id().await {
            let task = joined.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
            let mut in_hand = self.in_hand.values();
            let done = in_hand.find(|in_hand| in_hand.task.id() == task);
            if let Some(order) = done.map(|done| done.order) {
                self.in_hand.remove(&order.child());
                return (order, joined.map_or_else(panicked, |(_, outcome)| outcome));
            }
        }
        pending().await
    }
}

fn panicked(error: JoinError) -> OrderOutcome {
    let reason = format!("the start panicked: {error}");
    discard(error);
    Err(reason)
}
