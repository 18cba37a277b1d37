//! A handler's results go to the outputs, and its event is confirmed.

use std::sync::Arc;

use super::{
    job::{Handled, PoolJob},
    loopback::{Reserved, Returning},
    origin::Origin,
    rejections::{InputEvent, Rejections},
};
use crate::{
    engine::{
        account::{ledger::OutputsTicket, order_audit::OrderLine},
        egress::outputs::{Inside, NotHanded, View},
        shared::Shared,
    },
    event::Event,
    handler::Outputs,
    name::Name,
    router::AckWhen,
    settlement::{Ack, Refusal},
    sink::Outgoing,
};

/// Hands a handler's results to the outputs, in order, and confirms the event's own part.
pub(crate) async fn emit(shared: &Arc<Shared>, to: &mut View, job: PoolJob, outputs: Outputs) {
    if matches!(outputs, Outputs::None) {
        return confirm(shared, job);
    }
    let (Handled { event, handler, line, origin, attempts: attempt }, mut ack, extras) =
        job.into_parts();
    let (produced, reserved) =
        extras.map_or((None, None), |extras| (extras.produced, extras.reserved));
    let entry = &shared.process.handlers[handler];
    let (place, taken_at) = ((origin.number, origin.partition()), origin.taken_at);
    let at_once = entry.config.ack == AckWhen::OnSuccess;
    if at_once {
        shared.ledger.leaves(line.as_ref(), place, taken_at, &ack);
        let outputs = Ack::new(OutputsTicket(shared.ledger.clone()));
        std::mem::replace(&mut ack, outputs).confirm();
    }
    let pool = shared.process.pools[entry.pool].name;
    let mut leaving = Leaving {
        shared,
        to,
        pool,
        handler,
        attempt,
        line: line.as_ref(),
        origin,
        is_acknowledged: at_once,
        reserved,
        rejections: None,
    };
    match (outputs, produced) {
        (Outputs::None, _) => {}
        (Outputs::Same, Some(produced)) => produced.add([event]),
        (Outputs::Events(events), Some(produced)) => {
            produced.add(events.into_iter().map(|made| made.caused_by(&event)));
        }
        (Outputs::Same, None) => leaving.pass_on(event, None, &ack).await,
        (Outputs::Events(events), None) => {
            for made in events {
                leaving.pass_on(made.caused_by(&event), Some(&event), &ack).await;
            }
        }
    }
    if let Some(rejections) = leaving.rejections.take() {
        rejections.handed_on();
    }
    if !at_once {
        shared.ledger.leaves(line.as_ref(), place, taken_at, &ack);
    }
    ack.confirm();
}

/// Nothing was produced: its event is confirmed.
fn confirm(shared: &Shared, job: PoolJob) {
    let (Handled { line, origin, .. }, ack, _) = job.into_parts();
    let place = (origin.number, origin.partition());
    shared.ledger.leaves(line.as_ref(), place, origin.taken_at, &ack);
    ack.confirm();
}

/// The outputs of one event, on their way.
struct Leaving<'a> {
    shared: &'a Arc<Shared>,
    /// The outputs, as its worker knows them.
    to: &'a mut View,
    pool: Name,
    handler: usize,
    attempt: u32,
    /// Of the event that they are made of.
    line: Option<&'a OrderLine>,
    /// Of it, too.
    origin: Origin,
    /// It is acknowledged already, and will not be delivered again.
    is_acknowledged: bool,
    /// Room on the way back.
    reserved: Option<Reserved>,
    /// Rejections by outputs, once one of them may reject.
    rejections: Option<Rejections>,
}

impl Leaving<'_> {
    /// Back in, or to the outputs that take it. `input` is the event that it was made of; `None`
    /// for the input itself.
    async fn pass_on(&mut self, event: Event, input: Option<&Event>, ack: &Ack) {
        if let Some(loopback) = &self.shared.loopback
            && loopback.takes(event.ty())
        {
            // As many were reserved as the handler declares, and it has made no more.
            let Some(reserved) = self.reserved.as_mut().and_then(Reserved::split_one) else {
                return ack.child().refuse(Refusal::NotStored);
            };
            let (ack, Origin { assigned, taken_at, .. }) = (ack.child_sent_back(), self.origin);
            return loopback.send(Returning { event, ack, reserved, assigned, taken_at, to: None });
        }
        self.hand_over(event, input, ack).await;
    }

    /// To the outputs that take it. If one was removed just now, or while the event waited for room
    /// in it, the event is matched again.
    async fn hand_over(&mut self, mut event: Event, input: Option<&Event>, ack: &Ack) {
        let is_acknowledged = self.is_acknowledged;
        // Separate, because an event that enters an output borrows the list of outputs.
        let Self { shared, to, pool, handler, attempt, line, origin, rejections, .. } = self;
        let (shared, pool, attempt) = (*shared, *pool, *attempt);
        let mut leaves = |output: &Inside<'_>, event: Event| {
            let Some(rejecting) = output.rejecting() else {
                let (line, fence, ack) = (None, None, ack.child());
                return Outgoing { event, pool, attempt, line, fence, ack };
            };
            let rejections = rejections.get_or_insert_with(|| {
                let of = input.unwrap_or(&event).clone();
                let (handler, origin) = (*handler, *origin);
                Rejections::new(
                    shared,
                    InputEvent { event: of, handler, origin, attempts: attempt },
                    ack.child(),
                )
            });
            let ack = rejections.part(rejecting, input.is_some().then(|| event.clone()));
            let fence = Some(shared.inputs.revocations.fences.get(origin.assigned));
            Outgoing { event, pool, attempt, line: line.map(OrderLine::number), fence, ack }
        };
        let (all, assigned) = (shared.egress.all_outputs, origin.assigned);
        let given_up = move || async move {
            match is_acknowledged {
                true => std::future::pending().await,
                false => shared.inputs.revocations.until(assigned).await,
            }
        };
        // Outputs that were tried before, if an event goes to all of them.
        let mut asked = None;
        loop {
            to.refresh(&shared.egress.outputs);
            if !all && let Some(output) = to.plain(&event) {
                let Some(inside) = output.enter() else { continue };
                let outgoing = leaves(&inside, event);
                match inside.hand_over(outgoing, given_up).await {
                    Err(NotHanded::Removed(back)) => event = back,
                    Ok(()) | Err(NotHanded::GivenUp) => return,
                }
                continue;
            }
            match to.taking(&event, all, asked.as_deref().unwrap_or_default()) {
                Ok(Some(taking)) => {
                    let mut is_back = false;
                    for output in taking {
                        let outgoing = leaves(&output, event.clone());
                        let handed = output.hand_over(outgoing, given_up).await;
                        is_back |= matches!(handed, Err(NotHanded::Removed(_)));
                    }
                    if !is_back {
                        return;
                    }
                    asked = all.then(|| to.known());
                }
                Ok(None) => {}
                Err((output, panic)) => {
                    tracing::error!(
                        output,
                        trace_id = event.trace_id(),
                        panic,
                        "its matcher panicked; the event is refused"
                    );
                    return ack.child().refuse(Refusal::NotStored);
                }
            }
        }
    }
}
