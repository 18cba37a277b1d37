//! Carries out the plan's orders: each in a task of its own, so that no child keeps its
//! supervisor from answering.
//!
//! A child has one order at a time. The next one drops the future of the former and waits until
//! that is gone, so that no two of them ever run at once; the result of the former is ignored.

use std::{collections::HashMap, future::pending, sync::Arc};

use greenroom_queue::discard::discard;
use tokio::{
    sync::{Mutex, watch},
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::Instant,
};

use super::{
    child::{Child, ChildId, ExitReporter},
    plan::Fall,
    terms::Terms,
};
use crate::{Stop, pool::StopSummary};

/// Orders that are under way. Dropping it drops them all.
pub(crate) struct Hands {
    tasks: JoinSet<OrderOutcome>,
    /// The order that each child carries out.
    in_hand: HashMap<ChildId, InHand>,
}

struct InHand {
    what: OrderKind,
    task: AbortHandle,
    /// Held by the task while it works, also when it is aborted in the middle of something.
    turn: Arc<Mutex<()>>,
}

/// The job of a task, in case it panics.
#[derive(Debug, Clone, Copy)]
enum OrderKind {
    Start { life: u64 },
    Fall { how: Fall },
}

/// What an order came to.
#[derive(Debug)]
pub(crate) enum OrderOutcome {
    Started { life: u64, result: Result<(), String> },
    Fell { how: Fall, summary: Option<StopSummary> },
}

impl Hands {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), in_hand: HashMap::new() }
    }

    pub(crate) fn start(
        &mut self,
        id: ChildId,
        life: u64,
        child: Arc<dyn Child>,
        exits: ExitReporter,
    ) {
        let start = async move { OrderOutcome::Started { life, result: child.start(exits).await } };
        self.take_up(id, OrderKind::Start { life }, start);
    }

    /// `own` is how the child is stopped when there is time.
    pub(crate) fn fall(
        &mut self,
        id: ChildId,
        how: Fall,
        child: Arc<dyn Child>,
        own: Stop,
        terms: watch::Receiver<Terms>,
    ) {
        let fall = async move {
            OrderOutcome::Fell { how, summary: fall(&*child, how, own, terms).await }
        };
        self.take_up(id, OrderKind::Fall { how }, fall);
    }

    fn take_up(
        &mut self,
        id: ChildId,
        what: OrderKind,
        work: impl Future<Output = OrderOutcome> + Send + 'static,
    ) {
        let turn = self.in_hand.remove(&id).map(InHand::end).unwrap_or_default();
        let its_turn = turn.clone().lock_owned();
        let task = self.tasks.spawn(async move {
            // Dropped last, after the work.
            let _turn = its_turn.await;
            work.await
        });
        self.in_hand.insert(id, InHand { what, task, turn });
    }

    /// Gives up what this child carries out.
    pub(crate) fn give_up(&mut self, id: ChildId) {
        self.in_hand.remove(&id).map(InHand::end);
    }

    /// What the next order came to.
    ///
    /// # Cancel safety
    /// A dropped future has heard nothing.
    pub(crate) async fn next(&mut self) -> (ChildId, OrderOutcome) {
        loop {
            let Some(joined) = self.tasks.join_next_with_id().await else {
                return pending().await;
            };
            if let Some(heard) = self.hear(joined) {
                return heard;
            }
        }
    }

    fn hear(
        &mut self,
        joined: Result<(Id, OrderOutcome), JoinError>,
    ) -> Option<(ChildId, OrderOutcome)> {
        let task = joined.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let mut in_hand = self.in_hand.iter();
        let child = *in_hand.find(|(_, in_hand)| in_hand.task.id() == task)?.0;
        let what = self.in_hand.remove(&child)?.what;
        Some((child, joined.map_or_else(|error| what.failed(error), |(_, outcome)| outcome)))
    }
}

impl InHand {
    /// Returns the turn that the next one waits for.
    fn end(self) -> Arc<Mutex<()>> {
        self.task.abort();
        self.turn
    }
}

impl OrderKind {
    /// The task panicked. A child that panics while it goes down is as good as down.
    fn failed(self, error: JoinError) -> OrderOutcome {
        let reason = format!("the start panicked: {error}");
        discard(error);
        match self {
            Self::Start { life } => OrderOutcome::Started { life, result: Err(reason) },
            Self::Fall { how } => OrderOutcome::Fell { how, summary: None },
        }
    }
}

/// Gives an order to go down, and gives it anew when the terms are other ones.
async fn fall(
    child: &dyn Child,
    how: Fall,
    own: Stop,
    mut terms: watch::Receiver<Terms>,
) -> Option<StopSummary> {
    let since = Instant::now();
    loop {
        let told = *terms.borrow_and_update();
        tokio::select! {
            biased;
            summary = order(child, how, told, own, since) => return summary,
            () = told.outdated(&mut terms) => {}
        }
    }
}

async fn order(
    child: &dyn Child,
    how: Fall,
    terms: Terms,
    own: Stop,
    since: Instant,
) -> Option<StopSummary> {
    match how {
        Fall::Suspend => child.suspend(terms.patience(own, since)).await,
        Fall::Disable => child.disable(terms.patience(own, since)).await,
        Fall::Stop => return Some(child.stop(terms.stop(own, since)).await),
    }
    None
}
