//! A publish, until its event is settled.

use tokio::time::sleep;

use super::{
    attempt::{Attempted, attempt},
    lines::Waiting,
    message::Message,
    shared::Shared,
};

/// Publishes it until the server has stored or rejected it.
pub(super) async fn deliver(shared: &Shared, number: u64, waiting: Waiting) {
    let Waiting { message, line, ack, _room } = waiting;
    let _over = Over { shared, line };
    let stored = match &message {
        Ok(message) => until_settled(shared, number, message).await,
        Err(why) => Err(why.clone()),
    };
    match stored {
        Ok(()) => ack.confirm(),
        Err(why) => ack.reject(why),
    }
}

/// The publish is over, however it ends: the next of its line may go. After its event is settled,
/// so that an order which is audited there holds.
struct Over<'a> {
    shared: &'a Shared,
    line: Option<u64>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.shared.is_over(self.line);
    }
}

/// # Errors
/// Why it is never stored.
async fn until_settled(shared: &Shared, number: u64, message: &Message) -> Result<(), String> {
    let (gate, options, name) = (&shared.gate, &shared.options, &shared.name);
    let mut failures = 0;
    loop {
        if !shared.connection.is_up() {
            gate.fails(number, name, &shared.connection.why_down(), None);
            shared.connection.up().await;
        }
        let pass = gate.pass().await;
        let attempted = match attempt(shared, message).await {
            Attempted::Rejected(error) if shared.rejects_nothing => {
                Attempted::Failed { error, reached: false }
            }
            attempted => attempted,
        };
        match attempted {
            Attempted::Stored => {
                gate.works(number, name);
                return Ok(());
            }
            Attempted::Rejected(why) => {
                gate.works(number, name);
                return Err(why);
            }
            Attempted::Failed { error, reached } => {
                failures += 1;
                if reached {
                    shared.repeats();
                }
                gate.fails(number, name, &error, None);
                drop(pass);
                // A connection that is back, or another publish that works,
                // is no reason to wait on.
                tokio::select! {
                    () = sleep(options.backoff.wait(failures, rand::random())) => {}
                    () = gate.changed() => {}
                }
            }
            Attempted::Misconfigured(error) => {
                gate.pause(name, error, &options.probe, rand::random());
            }
        }
    }
}
