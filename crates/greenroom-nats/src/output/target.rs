//! JetStream as a target of requests.

use std::sync::Arc;

use async_nats::jetstream::{
    context::{GetStreamByNameErrorKind, PublishError},
    message::PublishMessage,
};
use greenroom_bus::{
    event::Event,
    sink::remote::{Attempted, Remote, RequestPace, TargetHad, WaitingEvent},
};

use super::{message::Message, refusal::Refusal};
use crate::{
    connection::{Connection, because},
    options::NatsOutput,
};

/// The streams of a server.
pub struct NatsTarget {
    pub(super) name: String,
    pub(super) connection: Arc<Connection>,
    pub(super) output: NatsOutput,
    /// Nothing is rejected: permanent refusals are retried, in case an operator has corrected the
    /// cause.
    pub(super) rejects_nothing: bool,
}

impl Remote for NatsTarget {
    /// Or why there is no message: it is rejected in its turn.
    type Kept = Result<Message, String>;

    fn describe(&self) -> String {
        self.name.clone()
    }

    fn keep(&self, event: Event, _fence: Option<u64>) -> Self::Kept {
        Message::new(&event, &self.output)
    }

    fn pace(&self) -> RequestPace {
        let NatsOutput { concurrency, backoff, probe, .. } = self.output;
        RequestPace { concurrency, batching: None, backoff, probe }
    }

    async fn attempt(&self, events: &[WaitingEvent<Self::Kept>]) -> Attempted {
        let message = match &events[0].kept {
            Ok(message) => message,
            Err(why) => return Attempted::Unwritable(why.clone()),
        };
        match self.publish(message).await {
            Attempted::Rejected(error) if self.rejects_nothing => {
                Attempted::Failed { error, after: None, had: TargetHad::Nothing }
            }
            attempted => attempted,
        }
    }

    fn down(&self) -> Option<String> {
        (!self.connection.is_up()).then(|| self.connection.why_down())
    }

    async fn ready(&self) {
        self.connection.ready().await;
    }

    fn is_refused(&self) -> bool {
        self.connection.is_refused()
    }
}

impl NatsTarget {
    async fn publish(&self, message: &Message) -> Attempted {
        let connection = &self.connection;
        let mut watched = connection.watch();
        let publish = PublishMessage::build()
            .payload(message.payload.clone())
            .headers(message.headers.clone());
        let sent = connection.jetstream.send_publish(message.subject.clone(), publish).await;
        let mut answer = match sent {
            Ok(answer) => answer.into_future(),
            // Nothing has left this process.
            Err(error) => return self.refused(message, error).await,
        };
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return match answer {
                    Ok(_) => Attempted::Stored,
                    Err(error) => self.refused(message, error).await,
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

    async fn refused(&self, message: &Message, error: PublishError) -> Attempted {
        let (subject, why) = (&message.subject, because(&error));
        match Refusal::from_error(&error) {
            Refusal::Rejected => {
                let bytes = message.payload.len();
                Attempted::Rejected(format!("{subject} does not take it ({bytes} bytes): {why}"))
            }
            Refusal::Pauses => Attempted::Misconfigured(format!("{subject}: {why}")),
            Refusal::NoStream => self.no_stream(subject).await,
            Refusal::Again => failed(format!("{subject}: {why}"), false),
            Refusal::Unknown => failed(format!("{subject}: {why}"), true),
        }
    }

    /// No stream takes the subject: finds out whether that is the event's fault or the operator's
    /// to correct.
    async fn no_stream(&self, subject: &str) -> Attempted {
        // In this order, so that a stream that is created in between rejects nothing.
        let others = match self.output.subject.wildcard() {
            Some(others) => self.takes(&others).await,
            None => None,
        };
        match self.takes(subject).await {
            // It was made just now, or has no leader.
            Some(true) => failed(format!("the stream of {subject} is not ready"), false),
            None => {
                let why = "no stream answers, and the server does not tell whether there is one";
                failed(format!("{subject}: {why}"), false)
            }
            Some(false) if others == Some(true) => Attempted::Rejected(format!(
                "no stream takes the subject {subject}, which {} makes of the event",
                self.output.subject
            )),
            Some(false) => Attempted::Misconfigured(format!(
                "no stream takes the subject {subject}; create one, or correct the subject"
            )),
        }
    }

    /// Whether a stream takes this subject, which may have wildcards. `None` if no answer comes.
    async fn takes(&self, subject: &str) -> Option<bool> {
        match self.connection.jetstream.stream_by_subject(subject).await {
            Ok(_) => Some(true),
            Err(error) => (error.kind() == GetStreamByNameErrorKind::NotFound).then_some(false),
        }
    }
}

/// It may pass; if it `reached` the server, that may have stored it.
fn failed(error: impl Into<String>, reached: bool) -> Attempted {
    let had = if reached { TargetHad::Unknown } else { TargetHad::Nothing };
    Attempted::Failed { error: error.into(), after: None, had }
}
