//! One publish, and what comes of it.

use async_nats::jetstream::{
    context::{GetStreamByNameErrorKind, PublishError},
    message::PublishMessage,
};

use super::{message::Message, refusal::Refusal, shared::Shared};
use crate::connection::because;

/// What an attempt comes to.
pub(super) enum Attempted {
    Stored,
    Rejected(String),
    /// It may pass; where it `reached` the server, that may have stored it.
    Failed {
        error: String,
        reached: bool,
    },
    /// Somebody has to correct it.
    Misconfigured(String),
}

fn failed(error: impl Into<String>, reached: bool) -> Attempted {
    Attempted::Failed { error: error.into(), reached }
}

pub(super) async fn attempt(shared: &Shared, message: &Message) -> Attempted {
    let connection = &shared.connection;
    let mut watched = connection.watch();
    let publish =
        PublishMessage::build().payload(message.payload.clone()).headers(message.headers.clone());
    let sent = connection.jetstream.send_publish(message.subject.clone(), publish).await;
    let mut answer = match sent {
        Ok(answer) => answer.into_future(),
        // Nothing has left this process.
        Err(error) => return comes_to(shared, message, error).await,
    };
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return match answer {
                Ok(_) => Attempted::Stored,
                Err(error) => comes_to(shared, message, error).await,
            },
            () = watched.changed() => {
                if watched.is_denied(&message.subject) {
                    return Attempted::Misconfigured(format!(
                        "the server does not allow this user to publish to {}; correct its permissions",
                        message.subject
                    ));
                }
                // Its answer went with the connection.
                if watched.is_another() {
                    return failed("the connection was lost before the server answered", true);
                }
            }
        }
    }
}

async fn comes_to(shared: &Shared, message: &Message, error: PublishError) -> Attempted {
    let (subject, why) = (&message.subject, because(&error));
    match Refusal::of(&error) {
        Refusal::Rejected => {
            let bytes = message.payload.len();
            Attempted::Rejected(format!("{subject} does not take it ({bytes} bytes): {why}"))
        }
        Refusal::Pauses => Attempted::Misconfigured(format!("{subject}: {why}")),
        Refusal::NoStream => no_stream(shared, subject).await,
        Refusal::Again => failed(format!("{subject}: {why}"), false),
        Refusal::Unknown => failed(format!("{subject}: {why}"), true),
    }
}

/// Nobody listens on the subject: who has to do what?
async fn no_stream(shared: &Shared, subject: &str) -> Attempted {
    // In this order, so that a stream that is made meanwhile rejects nothing.
    let others = match shared.options.subject.wildcard() {
        Some(others) => takes(shared, &others).await,
        None => None,
    };
    match takes(shared, subject).await {
        // It was made just now, or has no leader.
        Some(true) => failed(format!("the stream of {subject} is not ready"), false),
        None => {
            let why = "no stream answers, and the server does not tell whether there is one";
            failed(format!("{subject}: {why}"), false)
        }
        Some(false) if others == Some(true) => Attempted::Rejected(format!(
            "no stream takes the subject {subject}, which {} makes of the event",
            shared.options.subject
        )),
        Some(false) => Attempted::Misconfigured(format!(
            "no stream takes the subject {subject}; create one, or correct the subject"
        )),
    }
}

/// Whether a stream takes this subject, which may have wildcards. `None` if no answer comes.
async fn takes(shared: &Shared, subject: &str) -> Option<bool> {
    match shared.connection.jetstream.stream_by_subject(subject).await {
        Ok(_) => Some(true),
        Err(error) => (error.kind() == GetStreamByNameErrorKind::NotFound).then_some(false),
    }
}
