//! Dead letters of a store, read and changed through the listener (C04).

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use axum::{
    Extension,
    body::{Body, Bytes, to_bytes},
    extract::{Path as Place, RawQuery, Request, State},
    http::{HeaderValue, StatusCode, Uri, header},
    response::Response,
};
use futures_util::stream;
use greenroom_bus::store::letters::{
    Edit, Filter, JobChange, LetterError, LetterStore, Letters, WriteError,
};
use greenroom_config::{Word, plural};
use serde_json::json;
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};

use super::{
    answer::{Answer, Json, Refusal, as_json},
    daemon::{Asked, Daemon},
    letters::wanted::{AT, FILTERS, Wanted, filter},
    query::{Query, not_a_number},
    readers::Readers,
    serve::BODY_WITHIN,
};
use crate::{
    letters::{self, change},
    run::assemble::LettersAt,
};

/// The largest event that an edit accepts, in bytes.
const LARGEST_EVENT: usize = 64 << 20;

/// How many edits may hold an event at a time.
static EDITS: Semaphore = Semaphore::const_new(2);

/// The pieces of an export, and how many may wait for the client.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;

/// A change needs an explicit filter: leaving it out never means all letters.
fn named(query: &Query) -> Result<Filter, Refusal> {
    let filter = filter(query)?;
    if filter.takes_all() && query.one("all") != Some("true") {
        let what = "no letters are selected";
        let next = "give a filter such as `id`, `handler` or `group`, or `all=true`";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, what, AT, next));
    }
    Ok(filter)
}

impl From<LetterError> for Refusal {
    fn from(error: LetterError) -> Self {
        let (status, next) = match error {
            LetterError::NoLetter(_) => (StatusCode::NOT_FOUND, "`/api/dead-letters` lists them"),
            LetterError::NoReplay(_) => {
                (StatusCode::NOT_FOUND, "`/api/dead-letters/replays` lists them")
            }
            LetterError::Full(_) => {
                (StatusCode::INSUFFICIENT_STORAGE, "dropping letters also makes room")
            }
            LetterError::Closed => {
                (StatusCode::SERVICE_UNAVAILABLE, "greenroom is stopping: try again when it runs")
            }
            LetterError::Masked(_) => (
                StatusCode::FORBIDDEN,
                "stop greenroom and edit it in the store, where its owner sees it whole: `greenroom \
                 dead-letters edit NUMBER --store DIR`",
            ),
            LetterError::InReplay(_) => (StatusCode::CONFLICT, "wait until its replay has ended"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "`/healthz` shows the state of the store"),
        };
        Self::new(status, error.to_string(), AT, next)
    }
}

fn store(daemon: &Daemon) -> Result<(LetterStore, PathBuf), Refusal> {
    match &daemon.dead_letters {
        LettersAt::Store(store, path) => Ok((store.clone(), path.clone())),
        LettersAt::File(path) => Err(Refusal::new(
            StatusCode::CONFLICT,
            "dead letters go to a file here, which can only be read",
            path.display().to_string(),
            "declare `dead_letters: { store: {} }` so that they can be edited, replayed and dropped",
        )),
        LettersAt::Broker(place) => Err(with_broker(place)),
    }
}

/// Letters that greenroom cannot read.
pub(super) fn with_broker(place: &str) -> Refusal {
    let what = format!("dead letters go to {place}, where greenroom cannot list them");
    let next = "read them there like other records, by their headers; `greenroom dead-letters \
                redrive FILE` returns selected ones to where they came from";
    Refusal::new(StatusCode::CONFLICT, what, place, next)
}

/// A page of letters, or of groups of them.
pub(super) fn list(path: &Path, wanted: &Wanted) -> Answer {
    let letters = Letters::open(path)?;
    let Wanted { filter, order, after, limit, .. } = wanted;
    if let Some(by) = wanted.by {
        return Ok(Json::ok(letters::groups(&letters, filter, by)?));
    }
    let mut page = letters::page(&letters, filter, *order, *after, *limit)?;
    page["store"] = path.display().to_string().into();
    page["next"] = json!(page["after"].as_u64().map(|after| wanted.next_page(after)));
    Ok(Json::ok(page))
}

/// A whole letter.
pub(super) fn show(path: &Path, number: u64) -> Result<Response, Refusal> {
    let letters = Letters::open(path)?;
    let mut line = Vec::new();
    match letters.write(number, &mut line)? {
        true => Ok(as_json(Body::from(line))),
        false => Err(LetterError::NoLetter(number).into()),
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Letters(error) => error.into(),
            WriteError::Out(error) => LetterError::Failed(error.to_string()).into(),
        }
    }
}

/// All selected letters, one per line.
pub(super) async fn export(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let (_, path) = store(&daemon)?;
    let filter = filter(&Query::parse(query, AT, &FILTERS)?)?;
    let (pieces, taken) = mpsc::channel(PIECES);
    // It keeps its turn until it is read to the end.
    tokio::spawn(async move {
        let tell = pieces.clone();
        let exported = readers.read(AT, move || {
            let letters = Letters::open(&path)?;
            let mut out = Pieces { piece: Vec::new(), pieces };
            letters.export(&filter, &mut out)?;
            out.flush().map_err(|error| LetterError::Failed(error.to_string()).into())
        });
        if let Err(refusal) = exported.await {
            // An answer that breaks off is incomplete.
            let _ = tell.send(Err(io::Error::other(refusal.what))).await;
        }
    });
    let lines =
        stream::unfold(taken, |mut taken| async { taken.recv().await.map(|piece| (piece, taken)) });
    let mut response = as_json(Body::from_stream(lines));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    Ok(response)
}

/// Passes written data on, in pieces, as fast as they are taken.
struct Pieces {
    piece: Vec<u8>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        let sent = self.pieces.blocking_send(Ok(piece));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// The requested replays.
pub(super) async fn replays(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
) -> Answer {
    let (_, path) = store(&daemon)?;
    let replays = readers.read(AT, move || Ok(Letters::open(&path)?.replays()?)).await?;
    Ok(Json::ok(json!({ "replays": replays })))
}

/// Handles letters again.
pub(super) async fn replay(State(daemon): Asked, RawQuery(query): RawQuery) -> Answer {
    let (store, _) = store(&daemon)?;
    let known: Vec<_> = FILTERS.iter().copied().chain(["all", "rate"]).collect();
    let query = Query::parse(query, AT, &known)?;
    let (filter, rate) = (named(&query)?, query.number::<f64>("rate", AT)?);
    if rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        let what = "`rate` is a number of letters per second above 0";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, what, AT, "for example `rate=20`"));
    }
    let marked = store.mark(filter, rate).await?;
    tracing::info!(letters = marked.letters, replay = marked.replay, "dead letters are replayed");
    Ok(Json::ok(json!(marked)))
}

/// Stops a replay, resumes it, or cancels it.
pub(super) async fn order(
    State(daemon): Asked,
    Place((number, word)): Place<(String, String)>,
    uri: Uri,
) -> Answer {
    let (store, _) = store(&daemon)?;
    let id = number.parse().map_err(|_| not_a_number("a replay", &number, uri.path()))?;
    let change = JobChange::of(&word).ok_or_else(|| {
        let what = format!("{word:?} is not a command for a replay");
        let next = "use `stop`, `resume` or `cancel`";
        Refusal::new(StatusCode::NOT_FOUND, what, uri.path(), next)
    })?;
    let job = store.change_replay(id, change).await?;
    tracing::info!(replay = id, order = word, "a replay of dead letters was changed");
    Ok(Json::ok(json!(job)))
}

/// Drops letters, if there are as many as the client saw.
pub(super) async fn drop_letters(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    RawQuery(query): RawQuery,
) -> Answer {
    let (store, path) = store(&daemon)?;
    let known: Vec<_> = FILTERS.iter().copied().chain(["all", "confirm"]).collect();
    let query = Query::parse(query, AT, &known)?;
    let (mut filter, confirmed) = (named(&query)?, query.number::<u64>("confirm", AT)?);
    let counted = filter.clone();
    let totals = readers.read(AT, move || Ok(Letters::open(&path)?.totals(&counted)?)).await?;
    if confirmed != Some(totals.letters) {
        let what =
            format!("{} would be dropped for good", plural(totals.letters as usize, "letter"));
        let newest = totals.newest;
        let next = format!("confirm it: `&confirm={}&upto={newest}`", totals.letters);
        let mut refusal = Refusal::new(StatusCode::CONFLICT, what, AT, next);
        refusal.details = Some(json!(totals));
        return Err(refusal);
    }
    // Later letters were not counted.
    filter.upto = Some(filter.upto.unwrap_or(totals.newest).min(totals.newest));
    let dropped = store.drop_letters(filter).await?;
    tracing::warn!(letters = dropped.letters, "dead letters were dropped");
    Ok(Json::ok(json!(dropped)))
}

/// The event of a letter, for an edit; `null` if it has none.
pub(super) async fn for_edit(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    Place(number): Place<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let (_, path) = store(&daemon)?;
    let letter = number.parse().map_err(|_| not_a_number("a dead letter", &number, uri.path()))?;
    let read = move || -> Result<_, Refusal> { Ok(Letters::open(&path)?.content(letter)?) };
    let content = readers.read(uri.path(), read).await?;
    let event = if content.is_event { content.bytes } else { b"null".to_vec() };
    Ok(as_json(Body::from(event)))
}

/// Replaces the event of a letter.
pub(super) async fn edit(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    Place(number): Place<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let at = request.uri().path().to_owned();
    let (store, path) = store(&daemon)?;
    let letter = number.parse().map_err(|_| not_a_number("a dead letter", &number, &at))?;
    let query = Query::parse(query, &at, &["set"])?;
    let sets: Vec<String> = query.all("set").map(str::to_owned).collect();
    let Ok(_turn) = EDITS.try_acquire() else {
        let (status, what) = (StatusCode::SERVICE_UNAVAILABLE, "dead letters are being edited");
        return Err(Refusal::new(status, what, at, "try again when those edits are done"));
    };
    let body = body(request).await?;
    let wrong = |why: String| {
        let next = "send one CloudEvent as JSON, based on the answer to a GET of this path, or set \
                    places with `?set=/data/x=1`";
        Refusal::new(StatusCode::BAD_REQUEST, why, AT, next)
    };
    let make = move || {
        let known = Letters::open(&path)?.content(letter)?.bytes;
        let bytes = match (body.is_empty(), sets.is_empty()) {
            (true, true) => return Err(wrong("no change of the event is given".to_owned())),
            (true, false) => {
                change::set(&known, sets.iter().map(String::as_str)).map_err(&wrong)?.into()
            }
            (false, _) => body,
        };
        change::event(&bytes).map_err(wrong)
    };
    let event = readers.read(&at, make).await?;
    store.edit(Edit { letter, event }).await?;
    tracing::info!(letter, "the event of a dead letter was edited");
    Ok(Json::ok(json!({ "number": letter, "edited": true })))
}

async fn body(request: Request) -> Result<Bytes, Refusal> {
    let refused = |status, what: String| {
        Refusal::new(status, what, AT, "send one CloudEvent as JSON, in one piece")
    };
    let read = timeout(BODY_WITHIN, to_bytes(request.into_body(), LARGEST_EVENT)).await;
    match read {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => {
            let what = format!("the body is larger than {LARGEST_EVENT} bytes, or was cut off");
            Err(refused(StatusCode::PAYLOAD_TOO_LARGE, what))
        }
        Err(_) => {
            let what = format!("the body did not arrive within {} s", BODY_WITHIN.as_secs());
            Err(refused(StatusCode::REQUEST_TIMEOUT, what))
        }
    }
}
