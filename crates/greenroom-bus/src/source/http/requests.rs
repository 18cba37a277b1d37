//! One request: its sender, its content, and its answer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use bytes::Bytes;
use hyper::{Method, Request, body::Body, header, http::request::Parts};

use super::{
    answer::{self, HttpAnswer},
    body::{self, BadBody, BodyBounds, ReservedBytes},
    message::{BadMessage, Message, MessageForm, Reading, read},
    settings::HttpSettings,
    shared::{CurrentSettings, Shared},
    webhook,
};
use crate::{
    event::Event,
    http::server::{Place, has_too_large_headers},
    source::log::{AppendError, Appended},
};

/// Anybody may ask whether events can be posted.
const HEALTH: &str = "/healthz";

/// A larger body is parsed where nothing else waits for the thread.
const LONG_TO_PARSE: usize = 128 << 10;

/// The answer to a request.
pub(super) async fn answer<B>(
    shared: &Arc<Shared>,
    place: &Place,
    request: Request<B>,
) -> HttpAnswer
where
    B: Body<Data = Bytes> + Unpin,
{
    let (head, mut body) = request.into_parts();
    let current = shared.current();
    let settings = &current.settings;
    // A client that waits for `100 Continue` before its body does not get it.
    let is_waited_for = head.headers.contains_key(header::EXPECT);
    let form = match admit(shared, &current, &head) {
        Ok(form) => form,
        Err(answer) if is_waited_for => return answer::closing(*answer),
        Err(answer) => return unread(*answer, &mut body, settings).await,
    };
    let single = settings.max_event.min(settings.max_body);
    let limit = if form == MessageForm::Batch { settings.max_body } else { single };
    let bounds = BodyBounds { limit, all: settings.bodies, within: settings.body_timeout };
    let mut reserved = ReservedBytes::none(&shared.budget);
    let mut closing = shared.closing.subscribe();
    let read = tokio::select! {
        biased;
        read = body::read(&mut body, &mut reserved, bounds) => read,
        _ = closing.wait_for(|closing| *closing) => return answer::stopping(),
    };
    let body = match read {
        Ok(body) => body,
        Err(BadBody::TooLarge) if is_waited_for && body.size_hint().lower() > limit as u64 => {
            return answer::closing(answer::too_large(limit));
        }
        Err(why @ (BadBody::TooLarge | BadBody::NoRoom)) => {
            drop(reserved);
            let is_crowded = why == BadBody::NoRoom;
            let answer = if is_crowded { answer::crowded() } else { answer::too_large(limit) };
            return unread(answer, &mut body, settings).await;
        }
        Err(BadBody::Slow) => return answer::slow(),
        Err(BadBody::Broken) => return answer::broken(),
    };
    let _answering = place.answering();
    if let Err(why) = current.guard.admit_body(&head.headers, &body, SystemTime::now()) {
        return answer::refused(why);
    }
    match parse(current, head, body, reserved).await {
        Ok((events, reserved)) => append(shared, events, reserved).await,
        Err(why) => answer::bad(&why),
    }
}

/// The checks that are possible before the body is read.
fn admit(
    shared: &Shared,
    current: &CurrentSettings,
    head: &Parts,
) -> Result<MessageForm, Box<HttpAnswer>> {
    let (path, method) = (head.uri.path(), &head.method);
    if has_too_large_headers(head) {
        return Err(Box::new(answer::large_headers()));
    }
    if path == HEALTH {
        return Err(Box::new(health(shared, method)));
    }
    if !is_of(path, &shared.path) {
        return Err(Box::new(answer::not_found(&shared.path)));
    }
    if let (&Method::OPTIONS, Some(answer)) = (method, handshake(current, head)) {
        return Err(Box::new(answer));
    }
    if method != Method::POST {
        return Err(Box::new(answer::not_allowed("POST")));
    }
    current.guard.admit(&head.headers).map_err(|why| Box::new(answer::refused(why)))?;
    if let Some(answer) = unable(shared) {
        return Err(Box::new(answer));
    }
    MessageForm::from_headers(&headers(head), current.settings.records.is_some())
        .map_err(|why| Box::new(answer::bad(&why)))
}

/// The answer to a sender that asks whether it may post, if such requests are answered.
fn handshake(current: &CurrentSettings, head: &Parts) -> Option<HttpAnswer> {
    let webhook = current.settings.webhook.as_ref()?;
    let origin = webhook::asking(&head.headers)?;
    Some(match webhook.allows(origin) {
        true => answer::permitted(origin.clone(), webhook.rate()),
        false => answer::not_permitted(),
    })
}

fn health(shared: &Shared, method: &Method) -> HttpAnswer {
    match method {
        &Method::GET | &Method::HEAD => unable(shared).unwrap_or_else(|| {
            let is_full = shared.log.is_full();
            if is_full { answer::unwell() } else { answer::well() }
        }),
        _ => answer::not_allowed("GET, HEAD"),
    }
}

/// Why no events can be accepted, if so.
fn unable(shared: &Shared) -> Option<HttpAnswer> {
    if shared.is_closing() {
        return Some(answer::stopping());
    }
    shared.failed.load(Ordering::Relaxed).then(answer::failed)
}

/// Whether a path is the one that events are posted to, or below it.
fn is_of(path: &str, posted: &str) -> bool {
    match posted.strip_suffix('*') {
        Some(start) => path.len() > start.len() && path.starts_with(start),
        None => path == posted,
    }
}

fn headers(head: &Parts) -> Vec<(&str, &[u8])> {
    head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// Answers without the body, which is read all the same.
async fn unread<B>(answer: HttpAnswer, body: &mut B, settings: &HttpSettings) -> HttpAnswer
where
    B: Body<Data = Bytes> + Unpin,
{
    let is_read = body::discard(body, settings.max_body, settings.body_timeout).await;
    if is_read { answer } else { answer::closing(answer) }
}

/// The budget of the body goes along: parsing continues, with the body in memory, even if the
/// sender is gone.
async fn parse(
    current: Arc<CurrentSettings>,
    head: Parts,
    body: Bytes,
    reserved: ReservedBytes,
) -> Result<(Vec<Event>, ReservedBytes), BadMessage> {
    let is_long = body.len() > LONG_TO_PARSE;
    let parse = move || {
        let settings = &current.settings;
        let message = Message { path: head.uri.path(), headers: &headers(&head), body: &body };
        let reading = Reading {
            records: settings.records.as_deref(),
            max_event: settings.max_event,
            max_batch: settings.max_batch,
        };
        read(&message, &reading).map(|events| (events, reserved))
    };
    if !is_long {
        return parse();
    }
    let parsed = tokio::task::spawn_blocking(parse).await;
    parsed.unwrap_or_else(|_| {
        let reason = "the message could not be read; nothing of it was stored".to_owned();
        Err(BadMessage::Event { index: None, field: None, reason })
    })
}

/// An append that has begun continues, whether or not the sender waits for the answer.
async fn append(shared: &Shared, events: Vec<Event>, reserved: ReservedBytes) -> HttpAnswer {
    if events.is_empty() {
        return answer::taken(Appended::default());
    }
    let _until_it_is_stored = reserved;
    match shared.log.append(events).await {
        Ok(appended) => answer::taken(appended),
        Err(AppendError::Full { reason, retry_after }) => {
            tracing::debug!(input = shared.name, reason, "no room for posted events");
            answer::full(retry_after)
        }
        Err(AppendError::TooLarge { limit, .. }) => answer::too_large_for_log(limit),
        Err(AppendError::Failed(why)) => {
            if !shared.failed.swap(true, Ordering::Relaxed) {
                tracing::error!(
                    input = shared.name,
                    why,
                    "posted events cannot be stored any more"
                );
            }
            answer::failed()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tokio::{runtime::Builder, task::spawn_blocking};

    use super::*;
    use crate::source::http::body::BodyBudget;

    #[test]
    fn b02_a_body_that_is_parsed_is_counted_though_its_sender_has_gone() {
        let bytes = LONG_TO_PARSE + 1;
        let bounds = BodyBounds { limit: bytes, all: bytes, within: Duration::from_secs(5) };
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        runtime.unwrap().block_on(async {
            let (go_on, held_up) = mpsc::channel::<()>();
            // The only thread on which it can be parsed has something else to do.
            spawn_blocking(move || held_up.recv());
            let budget = Arc::<BodyBudget>::default();
            let mut reserved = ReservedBytes::none(&budget);
            let body = body::read(&mut "x".repeat(bytes), &mut reserved, bounds).await.unwrap();
            let current = Arc::new(CurrentSettings::new(HttpSettings::default()).unwrap());
            let (head, ()) = Request::new(()).into_parts();
            tokio::select! {
                biased;
                _ = parse(current, head, body, reserved) => panic!("it waits for the thread"),
                () = std::future::ready(()) => {}
            }
            let mut others = ReservedBytes::none(&budget);
            let other = body::read(&mut "x".to_owned(), &mut others, bounds).await;
            assert_eq!(other, Err(BadBody::NoRoom), "it is in memory until it is parsed");
            go_on.send(()).unwrap();
            spawn_blocking(|| ()).await.unwrap();
            assert!(body::read(&mut "x".to_owned(), &mut others, bounds).await.is_ok());
        });
    }
}
