//! What a handler produced goes to the outputs, and its event is confirmed.

use super::{
    job::{Handled, Job, Origin},
    loopback::{Reserved, Returning},
};
use crate::{
    engine::{account::ledger::OutputsTicket, egress::outputs::View, shared::Shared},
    event::Event,
    handler::Outputs,
    name::Name,
    router::AckWhen,
    settlement::{Ack, Refusal},
    sink::Outgoing,
};

/// Hands what a handler produced to the outputs, in order, and confirms the event's own part.
pub(crate) async fn emit(shared: &Shared, to: &mut View, job: Job, outputs: Outputs) {
    let (Handled { event, handler, line, origin, attempts: attempt }, mut ack, extras) =
        job.into_parts();
    let (produced, reserved) =
        extras.map_or((None, None), |extras| (extras.produced, extras.reserved));
    let mut leaving = Leaving { shared, to, attempt, origin, reserved };
    let (entry, taken) = (&shared.process.handlers[handler], (origin.number, origin.taken_at));
    let at_once = entry.config.ack == AckWhen::OnSuccess;
    if at_once {
        shared.ledger.leaves(line.as_ref(), taken, &ack);
        let outputs = Ack::new(OutputsTicket(shared.ledger.clone()));
        std::mem::replace(&mut ack, outputs).confirm();
    }
    let pool = shared.process.pools[entry.pool].name;
    match (outputs, produced) {
        (Outputs::None, _) => {}
        (Outputs::Same, Some(produced)) => produced.add([event]),
        (Outputs::Events(events), Some(produced)) => {
            produced.add(events.into_iter().map(|made| made.caused_by(&event)));
        }
        (Outputs::Same, None) => leaving.pass_on(pool, event, &ack).await,
        (Outputs::Events(events), None) => {
            for made in events {
                leaving.pass_on(pool, made.caused_by(&event), &ack).await;
            }
        }
    }
    if !at_once {
        shared.ledger.leaves(line.as_ref(), taken, &ack);
    }
    ack.confirm();
}

/// The outputs of one event, on their way.
struct Leaving<'a> {
    shared: &'a Shared,
    /// The outputs, as its worker knows them.
    to: &'a mut View,
    attempt: u32,
    /// Of the event that they are made of.
    origin: Origin,
    /// Room on the way back.
    reserved: Option<Reserved>,
}

impl Leaving<'_> {
    /// Back in, or to the outputs that take it.
    async fn pass_on(&mut self, pool: Name, event: Event, ack: &Ack) {
        if let Some(loopback) = &self.shared.loopback
            && loopback.takes(event.ty())
        {
            // As many were reserved as the handler declares, and it has made no more.
            let Some(reserved) = self.reserved.as_mut().and_then(Reserved::split_one) else {
                return ack.child().refuse(Refusal::NotStored);
            };
            let (ack, Origin { assigned, taken_at, .. }) = (ack.child(), self.origin);
            return loopback.send(Returning { event, ack, reserved, assigned, taken_at });
        }
        self.hand_over(pool, event, ack).await;
    }

    /// To the outputs that take it. Where one was removed just now, it is looked anew which do.
    async fn hand_over(&mut self, pool: Name, event: Event, ack: &Ack) {
        let Self { shared, to, attempt, .. } = self;
        let leaves = |event| Outgoing { event, pool, attempt: *attempt, ack: ack.child() };
        loop {
            to.refresh(&shared.egress.outputs);
            if !shared.egress.all_outputs
                && let Some(output) = to.plain(&event)
            {
                match output.enter() {
                    Some(inside) => return inside.hand_over(leaves(event)).await,
                    None => continue,
                }
            }
            match to.taking(&event, shared.egress.all_outputs) {
                Ok(Some(taking)) => {
                    for output in taking {
                        output.hand_over(leaves(event.clone())).await;
                    }
                    return;
                }
                Ok(None) => {}
                Err((output, panic)) => {
                    tracing::error!(output, panic, "its matcher panicked; the event is refused");
                    return ack.child().refuse(Refusal::NotStored);
                }
            }
        }
    }
}
