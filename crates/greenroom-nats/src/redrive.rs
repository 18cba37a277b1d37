//! Dead letters back to their origin (D06).

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_nats::{
    HeaderMap,
    datetime::parse_rfc3339,
    header::NATS_MESSAGE_ID,
    jetstream::{
        context::GetStreamByNameErrorKind,
        message::{PublishMessage, StreamMessage},
        stream::{RawMessageErrorKind, Stream},
    },
};
use greenroom_bus::{
    dead_letter::redrive::{LetterChoice, RedriveError, Redriven},
    event::http::encode,
};

use crate::{
    connection::{Connection, because},
    options::{NatsInput, NatsLetters},
    source::{ORIGIN, Position},
};

/// The prefix of JetStream's own headers: they belong to the original message.
const OWN: &str = "Nats-";

/// The interval of progress reports.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Republishes the messages of the letters of a subject, each to its original subject, with its own
/// bytes and headers and one that names its original place, and removes the letter. The letters are
/// those of a [`NatsDeadLetters`](crate::output::NatsDeadLetters) whose events came from a
/// [`NatsSource`](crate::source::NatsSource); the original is read from the source's stream.
/// `tells` receives the progress once a second.
///
/// `inputs` are those that letters have come by, by name: their messages are with the server that
/// these read from, and a letter of another input stays. Without any, all messages are with the
/// server of the letters. `choice` has no group.
///
/// A republished message is the newest in its stream, and so in the order of its key. Letters that
/// come in the meantime are not looked at.
///
/// # Errors
/// No server answers, it refuses the credentials, no stream has the letters, or the server does not
/// take a message or give a letter up.
///
/// # Cancel safety
/// A letter whose message was published may be left. Its message is published once more by the next
/// redrive, under the same `Nats-Msg-Id`: within the stream's `duplicate_window` it is stored once.
pub async fn redrive(
    letters: &NatsLetters,
    inputs: &[(String, NatsInput)],
    choice: &LetterChoice,
    mut tells: impl FnMut(&Redriven),
) -> Result<Redriven, RedriveError> {
    let connection = Connection::open(&letters.server()).await.map_err(RedriveError)?;
    let subject = letters.subject.to_string();
    let letters = stream_of_letters(&connection, &subject).await.map_err(RedriveError)?;
    let mut origins = Origins { inputs, choice, letters: connection, known: HashMap::new() };
    let (mut redriven, mut told) = (Redriven::default(), Instant::now());
    let last = letters.cached_info().state.last_sequence;
    let mut next = letters.cached_info().state.first_sequence;
    while next <= last && choice.limit.is_none_or(|limit| redriven.count() < limit) {
        let letter = match letters.get_first_raw_message_by_subject(&subject, next).await {
            Ok(letter) if letter.sequence <= last => letter,
            Ok(_) => break,
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => break,
            Err(error) => return Err(failed(next, &error)),
        };
        next = letter.sequence + 1;
        one(&mut origins, &letters, &letter, &mut redriven).await?;
        if told.elapsed() >= TELL_EVERY {
            tells(&redriven);
            told = Instant::now();
        }
    }
    tells(&redriven);
    Ok(redriven)
}

/// Publishes the message of one letter, and removes the letter.
async fn one(
    origins: &mut Origins<'_>,
    letters: &Stream,
    letter: &StreamMessage,
    redriven: &mut Redriven,
) -> Result<(), RedriveError> {
    let (choice, number) = (origins.choice, letter.sequence);
    let says = |what: &str, text: &str| {
        header(letter, &format!("greenroom-{what}")) == Some(&*encode(text))
    };
    if !choice.takes(says) {
        redriven.passed_over += 1;
        return Ok(());
    }
    let (origin, original) = match origins.original(letter).await? {
        Ok(found) => found,
        Err(why) => {
            redriven.stays(format_args!("letter {number}"), &why);
            return Ok(());
        }
    };
    if !choice.counts_only {
        let id = format!("redrive {} {number}", letters.cached_info().config.name);
        let published = publish(&origin, original, id).await;
        published.map_err(|error| failed(number, &*error))?;
        letters.delete_message(number).await.map_err(|error| failed(number, &error))?;
    }
    redriven.is_published(&origin.stream.cached_info().config.name);
    Ok(())
}

fn failed(number: u64, error: &dyn std::error::Error) -> RedriveError {
    RedriveError(format!("letter {number}: {}", because(error)))
}

fn header<'l>(letter: &'l StreamMessage, name: &str) -> Option<&'l str> {
    letter.headers.get(name).map(|value| value.as_str())
}

/// The stream that has the letters.
async fn stream_of_letters(connection: &Connection, subject: &str) -> Result<Stream, String> {
    let found = connection.jetstream.stream_by_subject(subject).await;
    let name = found.map_err(|error| match error.kind() {
        GetStreamByNameErrorKind::NotFound => {
            format!("no stream takes the subject {subject}, so there are no letters")
        }
        _ => format!("the stream of {subject} cannot be found: {}", because(&error)),
    })?;
    stream(connection, &name).await
}

async fn stream(connection: &Connection, name: &str) -> Result<Stream, String> {
    let found = connection.jetstream.get_stream(name).await;
    found.map_err(|error| format!("stream {name} cannot be read: {}", because(&error)))
}

/// A stream that letters came from.
struct Origin {
    connection: Arc<Connection>,
    stream: Stream,
}

impl Origin {
    /// Whether this took the place of the message of that letter: both it and the stream came after
    /// that was taken. The message alone does not tell where clocks differ, and a stream that was
    /// made again as a mirror of the old one has the messages with their times.
    fn is_another(&self, original: &StreamMessage, letter: &StreamMessage) -> bool {
        let taken = header(letter, "greenroom-first-at");
        let taken = taken.and_then(|text| parse_rfc3339(text).ok());
        let taken = taken.map_or(letter.time, |taken| taken.min(letter.time));
        original.time > taken && self.stream.cached_info().created > taken
    }
}

/// Those that were needed so far.
struct Origins<'a> {
    inputs: &'a [(String, NatsInput)],
    choice: &'a LetterChoice,
    /// To where the letters are.
    letters: Arc<Connection>,
    /// By the names of input and stream; or why one cannot be read.
    known: HashMap<(Option<String>, String), Result<Arc<Origin>, String>>,
}

impl Origins<'_> {
    /// The message that a letter is about.
    ///
    /// # Errors
    /// A server cannot be reached; or, inside, why there is no message.
    async fn original(
        &mut self,
        letter: &StreamMessage,
    ) -> Result<Result<(Arc<Origin>, StreamMessage), String>, RedriveError> {
        let source = header(letter, "greenroom-source").unwrap_or_default();
        let position = header(letter, "greenroom-position").and_then(|text| text.parse().ok());
        let name = source.strip_prefix("nats:").and_then(|rest| rest.split_once('/'));
        let (Some((name, _)), Some(position)) = (name, position) else {
            return Ok(Err(format!("it came from {source:?}, which is no stream")));
        };
        let origin = match self.find(header(letter, "greenroom-input"), name).await? {
            Ok(origin) => origin,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match origin.stream.get_raw_message(position).await {
            Ok(original) => match origin.is_another(&original, letter) {
                false => Ok((origin, original)),
                true => Err(format!(
                    "message {position} of stream {name} is another one: the stream was made anew after the message of this letter was taken, which is gone"
                )),
            },
            Err(error) => Err(format!(
                "message {position} of stream {name} cannot be read: {}",
                because(&error)
            )),
        })
    }

    async fn find(
        &mut self,
        input: Option<&str>,
        stream: &str,
    ) -> Result<Result<Arc<Origin>, String>, RedriveError> {
        let input = input.filter(|_| !self.inputs.is_empty());
        let key = (input.map(str::to_owned), stream.to_owned());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let connection = match input {
            None => Ok(self.letters.clone()),
            Some(input) => {
                let of = self.inputs.iter().find(|(name, _)| encode(name) == input);
                match of {
                    Some((_, input)) => {
                        Ok(Connection::open(&input.server()).await.map_err(RedriveError)?)
                    }
                    None => Err(format!("it came by the input {input:?}, which is not known here")),
                }
            }
        };
        let origin = match connection {
            Ok(connection) => {
                let found = self::stream(&connection, stream).await;
                found.map(|stream| Arc::new(Origin { connection, stream }))
            }
            Err(why) => Err(why),
        };
        self.known.insert(key, origin.clone());
        Ok(origin)
    }
}

async fn publish(
    Origin { connection, stream }: &Origin,
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
    if headers.get(ORIGIN).is_none() {
        let stream = &stream.cached_info().config.name;
        headers.insert(ORIGIN, Position(stream, original.sequence).to_string());
    }
    headers.insert(NATS_MESSAGE_ID, id);
    let message = PublishMessage::build().payload(original.payload).headers(headers);
    connection.jetstream.send_publish(original.subject, message).await?.await?;
    Ok(())
}
