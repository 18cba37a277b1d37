//! Dead letters back to where they came from.

use async_nats::{
    HeaderMap,
    header::NATS_MESSAGE_ID,
    jetstream::{
        message::{PublishMessage, StreamMessage},
        stream::{RawMessageErrorKind, Stream},
    },
};

use crate::{
    connection::{Connection, because},
    server::NatsServer,
};

/// What headers of JetStream itself begin with: they belong to the message that had them.
const OWN: &str = "Nats-";

/// What became of the letters of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Redriven {
    /// So many were published again, and removed.
    pub published: u64,
    /// Those that stay: their numbers in the stream, and why.
    pub left: Vec<(u64, String)>,
}

/// Redriving could not go on. What was done before stays done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedriveError(String);

/// Publishes the messages again that the letters of a stream are about, each to the subject that it
/// had, with its own bytes and headers, and removes its letter. The letters are those of a
/// [`NatsDeadLetters`](crate::output::NatsDeadLetters) whose events came from a
/// [`NatsSource`](crate::source::NatsSource); the original is read from the source's stream.
///
/// What is published now counts as newer than all that its stream has, and so for the order of its
/// key. Letters that come meanwhile are not looked at.
///
/// # Errors
/// No server answers, it refuses the credentials, the stream of the letters does not exist, or the
/// server does not take a message or give a letter up.
///
/// # Cancel safety
/// A letter whose message was published may be left. Its message is published once more by the next
/// redrive, under the same `Nats-Msg-Id`: within the stream's `duplicate_window` it is stored once.
pub async fn redrive(server: &NatsServer, letters: &str) -> Result<Redriven, RedriveError> {
    let connection = Connection::open(server).await.map_err(RedriveError)?;
    let from = stream(&connection, letters).await.map_err(RedriveError)?;
    let state = &from.cached_info().state;
    let mut redriven = Redriven::default();
    for number in state.first_sequence..=state.last_sequence {
        let letter = match from.get_raw_message(number).await {
            Ok(letter) => letter,
            // Removed before.
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => continue,
            Err(error) => return Err(failed(number, &error)),
        };
        match original(&connection, &letter).await {
            Err(why) => redriven.left.push((number, why)),
            Ok(original) => {
                publish(&connection, original, format!("redrive {letters} {number}"))
                    .await
                    .map_err(|error| failed(number, &*error))?;
                from.delete_message(number).await.map_err(|error| failed(number, &error))?;
                redriven.published += 1;
            }
        }
    }
    Ok(redriven)
}

fn failed(number: u64, error: &dyn std::error::Error) -> RedriveError {
    RedriveError(format!("letter {number}: {}", because(error)))
}

async fn stream(connection: &Connection, name: &str) -> Result<Stream, String> {
    let found = connection.jetstream.get_stream(name).await;
    found.map_err(|error| format!("stream {name} cannot be read: {}", because(&error)))
}

/// The message that a letter is about.
///
/// # Errors
/// Why there is none.
async fn original(
    connection: &Connection,
    letter: &StreamMessage,
) -> Result<StreamMessage, String> {
    let header = |name: &str| letter.headers.get(name).map(|value| value.as_str());
    let source = header("greenroom-source").unwrap_or_default();
    let position = header("greenroom-position").and_then(|text| text.parse::<u64>().ok());
    let name = source.strip_prefix("nats:").and_then(|rest| rest.split_once('/'));
    let (Some((name, _)), Some(position)) = (name, position) else {
        return Err(format!("it came from {source:?}, which is no stream"));
    };
    let from = stream(connection, name).await?;
    from.get_raw_message(position).await.map_err(|error| {
        format!("message {position} of stream {name} cannot be read: {}", because(&error))
    })
}

async fn publish(
    connection: &Connection,
    original: StreamMessage,
    id: String,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut headers = HeaderMap::new();
    for (name, values) in original.headers.iter() {
        let is_own = AsRef::<str>::as_ref(name).starts_with(OWN);
        for value in values.iter().filter(|_| !is_own) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers.insert(NATS_MESSAGE_ID, id);
    let message = PublishMessage::build().payload(original.payload).headers(headers);
    connection.jetstream.send_publish(original.subject, message).await?.await?;
    Ok(())
}
