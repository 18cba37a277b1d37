//! A publish, and what follows for its event.

use tokio::time::Instant;

use super::{
    attempt::{Attempted, attempt},
    lines::Waiting,
    message::Message,
    shared::Shared,
};

/// What an event comes to.
enum Published {
    Stored,
    Rejected(String),
    /// It is tried again later.
    Failed,
    /// The partition of its input was taken away: the new owner publishes it.
    Revoked,
}

/// Publishes it. The server stores or rejects it, or it goes back into its line: while it waits for
/// the next attempt, others are published.
pub(super) async fn deliver(shared: &Shared, mut waiting: Waiting) {
    let published = match &waiting.message {
        Ok(message) => publish(shared, &waiting, message).await,
        Err(why) => Published::Rejected(why.clone()),
    };
    let Waiting { line, ack, _room, .. } = match published {
        Published::Failed => {
            waiting.failures += 1;
            let wait = shared.options.backoff.wait(waiting.failures, rand::random());
            waiting.due = Instant::now() + wait;
            return shared.fails(waiting);
        }
        _ => waiting,
    };
    match published {
        Published::Rejected(why) => ack.reject(why),
        Published::Revoked => drop(ack),
        _ => ack.confirm(),
    }
    // Only now the next of its line may go, so that an order which is audited there holds.
    shared.is_over(line);
}

async fn publish(shared: &Shared, waiting: &Waiting, message: &Message) -> Published {
    let (gate, options, name) = (&shared.gate, &shared.options, &shared.name);
    let number = waiting.number;
    loop {
        if !shared.connection.is_up() {
            gate.fails(number, name, &shared.connection.why_down(), None);
            shared.connection.up().await;
        }
        let _pass = gate.pass().await;
        if waiting.ack.is_revoked() {
            gate.leaves(number);
            return Published::Revoked;
        }
        let attempted = match attempt(shared, message).await {
            Attempted::Rejected(error) if shared.rejects_nothing => {
                Attempted::Failed { error, reached: false }
            }
            attempted => attempted,
        };
        match attempted {
            Attempted::Stored => {
                shared.works(number);
                return Published::Stored;
            }
            Attempted::Rejected(why) => {
                shared.works(number);
                return Published::Rejected(why);
            }
            Attempted::Failed { error, reached } => {
                if reached {
                    shared.repeats();
                }
                gate.fails(number, name, &error, None);
                return Published::Failed;
            }
            Attempted::Misconfigured(error) => {
                gate.pause(name, error, &options.probe, rand::random());
            }
        }
    }
}
