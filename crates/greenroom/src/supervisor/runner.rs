//! The only task of a supervisor: receives events, tells the plan, and carries out its orders.
//!
//! It never waits for a child, so it answers at once even if its children do not. It ends
//! when the plan is over.

use std::{sync::Arc, time::Duration};

use greenroom_queue::discard::discard;
use tokio::{sync::mpsc, time::Instant};

use super::{
    child::{Child, ChildExit},
    error::ChangeError,
    hands::{Hands, OrderOutcome},
    keeper::Keeper,
    plan::{Fall, Order},
    terms::{Terms, sleep_until},
    waiting::{Callers, answer},
};
use crate::{Stop, pool::StopSummary};

mod told;

/// How long after the deadline a child may take to end at once: twice as long as a pool needs.
const LET_GO: Duration = Duration::from_secs(1);

pub(super) struct Runner {
    keeper: Arc<Keeper>,
    hands: Hands,
    /// The exits of children.
    exits: mpsc::UnboundedReceiver<ChildExit>,
    /// Given to each child that is started.
    reports: mpsc::UnboundedSender<ChildExit>,
    /// The deadline has passed.
    late: bool,
}

impl Runner {
    pub(super) fn new(keeper: Arc<Keeper>) -> Self {
        let (reports, exits) = mpsc::unbounded_channel();
        Self { keeper, hands: Hands::default(), exits, reports, late: false }
    }

    /// Runs until all children are down. Another order may have come by then: see [`Keeper::end`].
    pub(super) async fn run(&mut self) {
        while !self.carry_out() {
            self.hear().await;
        }
    }

    /// True once it is over.
    fn carry_out(&mut self) -> bool {
        let (orders, notices, over) = {
            let plan = &mut self.keeper.state.lock().plan;
            (plan.orders(Instant::now()), plan.notices(), plan.is_over())
        };
        notices.into_iter().for_each(|notice| self.tell(notice));
        orders.into_iter().for_each(|order| self.give(order));
        let overtaken = {
            let mut state = self.keeper.state.lock();
            let state = &mut *state;
            state.waiting.overtaken(|child| state.plan.wants_up(child))
        };
        drop(overtaken);
        over
    }

    fn give(&mut self, order: Order) {
        let (child, own, terms) = {
            let state = self.keeper.state.lock();
            let Some(spec) = state.plan.spec(order.child()) else { return };
            (spec.child.clone(), spec.stop, state.terms)
        };
        match order {
            Order::Start { child: id, life } => {
                let reports = self.reports.clone();
                let exits = Box::new(move |reason| {
                    let _ = reports.send(ChildExit { child: id, life, reason });
                });
                let start = async move { child.start(exits).await.map(|()| None) };
                self.hands.take_up(order, |_| Box::pin(start));
            }
            Order::Fall { how, .. } => self.hands.take_up(order, move |since| {
                Box::pin(async move { Ok(fall(child, how, own, terms, since).await) })
            }),
        }
    }

    async fn hear(&mut self) {
        let (alarm, keeper) = (self.alarm(), self.keeper.clone());
        tokio::select! {
            biased;
            (order, outcome) = self.hands.next() => self.done(order, outcome),
            Some(exit) = self.exits.recv() => {
                let mut state = keeper.state.lock();
                let at = state.moment();
                state.plan.exited(exit, at);
            }
            () = keeper.changed.notified() => {}
            () = sleep_until(alarm) => self.look_at_the_clock(),
        }
    }

    /// The time when a child is due to start, or when the time to go down ends.
    fn alarm(&self) -> Option<Instant> {
        let grace = if self.late { LET_GO } else { Duration::ZERO };
        let state = self.keeper.state.lock();
        let deadline = state.terms.deadline().map(|at| at + grace);
        [deadline, state.plan.next_due(Instant::now())].into_iter().flatten().min()
    }

    /// At the deadline the rest goes down at once, in no order; a child that is not down a second
    /// later is given up.
    fn look_at_the_clock(&mut self) {
        let mut state = self.keeper.state.lock();
        let Some(deadline) = state.terms.deadline() else { return };
        let now = Instant::now();
        if now >= deadline && !self.late {
            self.late = true;
            state.plan.hurry();
            state.plan.give_falls_anew();
        } else if now >= deadline + LET_GO {
            let mut callers = Callers::default();
            let given_up = state.plan.give_up();
            if state.plan.stops() {
                given_up.iter().for_each(|child| callers.extend(state.stopped(*child, None)));
            }
            drop(state);
            for child in given_up {
                self.hands.give_up(child);
            }
            answer(callers, &Err(ChangeError::Overtaken));
        }
    }

    fn done(&mut self, order: Order, outcome: OrderOutcome) {
        let summary = outcome.clone().ok().flatten();
        let mut callers = Callers::default();
        let mut state = self.keeper.state.lock();
        let at = state.moment();
        let gone = match (order, outcome) {
            (Order::Start { child, life }, Ok(_)) => {
                state.plan.started(child, life, at);
                None
            }
            (Order::Start { child, life }, Err(reason)) => {
                state.plan.start_failed(child, life, reason, at);
                None
            }
            (Order::Fall { child, how }, _) => {
                if matches!(how, Fall::Stop) {
                    callers = state.stopped(child, summary.clone());
                }
                state.plan.fell(child, how)
            }
        };
        drop(state);
        answer(callers, &summary.ok_or(ChangeError::Overtaken));
        discard(gone);
    }
}

/// An order to go down, in progress since then, for a child with its `own` way of stopping.
async fn fall(
    child: Arc<dyn Child>,
    how: Fall,
    own: Stop,
    terms: Terms,
    since: Instant,
) -> Option<StopSummary> {
    match how {
        Fall::Suspend => child.suspend(terms.patience(own, since)).await,
        Fall::Disable => child.disable(terms.patience(own, since)).await,
        Fall::Stop => return Some(child.stop(terms.stop(own, since)).await),
    }
    None
}
