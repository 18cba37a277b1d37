//! The place of letters: a running greenroom, or a store that none has open.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use greenroom_bus::{
    dead_letter::DeadLetterStore,
    store::letters::{
        By, Edit, Filter, JobChange, LetterError, LetterStore, Order, WriteError, give_reserve_back,
    },
};
use greenroom_config::Word;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::{
    admin_client,
    cli::{LettersFilter, LettersPlace},
    config::{self, LettersTo},
    letters::{self, change},
};

/// The place of letters.
pub(super) enum Place {
    /// At the greenroom with this address.
    Daemon(String),
    /// In this directory.
    Store(PathBuf),
}

impl Place {
    /// The place that the command line names.
    ///
    /// # Errors
    /// The configuration cannot be used, or it names a file.
    pub(super) fn find(place: &LettersPlace) -> Result<Self, String> {
        if let Some(store) = &place.store {
            return Ok(Self::Store(store.clone()));
        }
        if let Some(file) = &place.config {
            let (config, problems) = config::load(file, &[]);
            let config = config.ok_or_else(|| problems.render(false))?;
            return match config.dead_letters.destination() {
                LettersTo::Store(store) => Ok(Self::Store(store.path.clone())),
                LettersTo::Broker(broker) => Err(format!(
                    "the dead letters of {0} go to {1}: read them there like other records; \
                     `greenroom dead-letters redrive {0}` returns them to where they came from",
                    file.display(),
                    broker.place()
                )),
                LettersTo::File(letters) => Err(format!(
                    "the dead letters of {} are in the file {}, one JSON object per line: read it \
                     with any tool; `dead_letters: {{ store: {{}} }}` keeps them so that they can \
                     be found, edited and replayed",
                    file.display(),
                    letters.path.display()
                )),
            };
        }
        match place.address.as_deref() {
            Some(address) if address.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(format!("`{address}` is not an address: select letters with `--id {address}`"))
            }
            address => Ok(Self::Daemon(address.unwrap_or(admin_client::ADDRESS).to_owned())),
        }
    }

    /// Its name on the command line.
    pub(super) fn named(&self) -> String {
        match self {
            Self::Daemon(address) => address.clone(),
            Self::Store(path) => format!("--store {}", path.display()),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    pub(super) fn page(
        &self,
        filter: &LettersFilter,
        after: u64,
        limit: usize,
    ) -> Result<Value, String> {
        match self {
            Self::Daemon(address) => {
                let mut query = query(filter);
                query.append_pair("after", &after.to_string());
                query.append_pair("limit", &limit.to_string());
                admin_client::get(address, &format!("/api/dead-letters?{}", query.finish()))
            }
            Self::Store(path) => {
                let letters = letters::open(path, false)?;
                letters::page(&letters, &wanted(filter), Order::Oldest, after, limit)
                    .map_err(error_text)
            }
        }
    }

    pub(super) fn groups(&self, filter: &LettersFilter, by: By) -> Result<Value, String> {
        match self {
            Self::Daemon(address) => {
                let mut query = query(filter);
                query.append_pair("by", by.word());
                admin_client::get(address, &format!("/api/dead-letters?{}", query.finish()))
            }
            Self::Store(path) => {
                let letters = letters::open(path, false)?;
                letters::groups(&letters, &wanted(filter), by).map_err(error_text)
            }
        }
    }

    /// Releases the disk space that a store reserves for letters: on a full disk, nothing could be
    /// read. False if none was reserved, or a greenroom has the store open.
    pub(super) fn makes_room(&self) -> bool {
        match self {
            Self::Daemon(_) => false,
            Self::Store(path) => give_reserve_back(path),
        }
    }

    pub(super) fn totals(&self, filter: &LettersFilter) -> Result<Value, String> {
        Ok(self.groups(filter, By::Reason)?["totals"].take())
    }

    /// A letter as JSON, as written.
    pub(super) fn letter(&self, number: u64, unmasked: bool) -> Result<String, String> {
        match self {
            Self::Daemon(address) => {
                admin_client::get_text(address, &format!("/api/dead-letters/{number}"))
            }
            Self::Store(path) => {
                let letters = letters::open(path, unmasked)?;
                let mut line = Vec::new();
                match letters.write(number, &mut line).map_err(not_written)? {
                    true => String::from_utf8(line)
                        .map_err(|error| format!("the letter {number} is damaged: {error}")),
                    false => Err(error_text(LetterError::NoLetter(number))),
                }
            }
        }
    }

    /// The event of a letter for an editor, or the template if there is none.
    pub(super) fn content(&self, number: u64) -> Result<Vec<u8>, String> {
        match self {
            Self::Daemon(address) => {
                let event =
                    admin_client::get_text(address, &format!("/api/dead-letters/{number}/edit"))?;
                Ok(if event == "null" { Vec::new() } else { event.into_bytes() })
            }
            Self::Store(path) => {
                let content = letters::open(path, true)?.content(number).map_err(error_text)?;
                Ok(content.bytes)
            }
        }
    }

    pub(super) fn export(
        &self,
        filter: &LettersFilter,
        unmasked: bool,
        out: &mut dyn Write,
    ) -> Result<(), String> {
        match self {
            Self::Daemon(address) => {
                let query = query(filter).finish();
                admin_client::copy(address, &format!("/api/dead-letters/export?{query}"), out)
            }
            Self::Store(path) => {
                let letters = letters::open(path, unmasked)?;
                letters.export(&wanted(filter), out).map_err(not_written)?;
                out.flush().map_err(|error| error.to_string())
            }
        }
    }

    /// Sets places in the event of a letter.
    pub(super) fn set(&self, number: u64, settings: &[String]) -> Result<(), String> {
        match self {
            Self::Daemon(address) => {
                let mut query = Serializer::new(String::new());
                settings.iter().for_each(|set| {
                    query.append_pair("set", set);
                });
                let path = format!("/api/dead-letters/{number}/edit?{}", query.finish());
                admin_client::post(address, &path, b"").map(|_| ())
            }
            Self::Store(path) => {
                let known = self.content(number)?;
                let event = change::set(&known, settings.iter().map(String::as_str))?;
                self.store(path, number, &known, &event)
            }
        }
    }

    /// Replaces the event of a letter.
    pub(super) fn replace(&self, number: u64, event: &[u8]) -> Result<(), String> {
        match self {
            Self::Daemon(address) => {
                let path = format!("/api/dead-letters/{number}/edit");
                admin_client::post(address, &path, event).map(|_| ())
            }
            Self::Store(path) => self.store(path, number, &self.content(number)?, event),
        }
    }

    /// Replaces the known event by another one, unless that was copied from a masked one.
    fn store(&self, path: &Path, letter: u64, known: &[u8], event: &[u8]) -> Result<(), String> {
        let letters = letters::open(path, false)?;
        if letters.mask().stands_in(event) && !letters.mask().stands_in(known) {
            let why = "`***` replaces a value that the mask of the store hides: write the value \
                       itself, which `show --unmasked` prints";
            return Err(why.to_owned());
        }
        let event = change::event(event)?;
        self.change(async |store| store.edit(Edit { letter, event }).await)
    }

    pub(super) fn replay(
        &self,
        filter: &LettersFilter,
        rate: Option<f64>,
    ) -> Result<Value, String> {
        match self {
            Self::Daemon(address) => {
                let mut query = query(filter);
                query.append_pair("all", "true");
                if let Some(rate) = rate {
                    query.append_pair("rate", &rate.to_string());
                }
                admin_client::post(
                    address,
                    &format!("/api/dead-letters/replay?{}", query.finish()),
                    b"",
                )
            }
            Self::Store(_) => {
                let filter = wanted(filter);
                let marked = self.change(async |store| store.mark(filter, rate).await)?;
                Ok(json!(marked))
            }
        }
    }

    pub(super) fn replays(&self) -> Result<Value, String> {
        match self {
            Self::Daemon(address) => admin_client::get(address, "/api/dead-letters/replays"),
            Self::Store(path) => {
                let replays = letters::open(path, false)?.replays().map_err(error_text)?;
                Ok(json!({ "replays": replays }))
            }
        }
    }

    pub(super) fn order(&self, id: u64, change: JobChange) -> Result<Value, String> {
        match self {
            Self::Daemon(address) => admin_client::post(
                address,
                &format!("/api/dead-letters/replays/{id}/{change}"),
                b"",
            ),
            Self::Store(_) => {
                Ok(json!(self.change(async |store| store.change_replay(id, change).await)?))
            }
        }
    }

    /// Drops letters up to this one, if they are as many as were seen.
    pub(super) fn drop_letters(
        &self,
        filter: &LettersFilter,
        count: u64,
        newest: u64,
    ) -> Result<Value, String> {
        match self {
            Self::Daemon(address) => {
                let mut query = query(filter);
                query.append_pair("all", "true");
                query.append_pair("upto", &newest.to_string());
                query.append_pair("confirm", &count.to_string());
                admin_client::post(
                    address,
                    &format!("/api/dead-letters/drop?{}", query.finish()),
                    b"",
                )
            }
            Self::Store(_) => {
                let filter = Filter { upto: Some(newest), ..wanted(filter) };
                Ok(json!(self.change(async |store| store.drop_letters(filter).await)?))
            }
        }
    }

    /// Changes the store, which no one else may have open.
    fn change<T>(
        &self,
        change: impl AsyncFnOnce(&LetterStore) -> Result<T, LetterError>,
    ) -> Result<T, String> {
        let Self::Store(path) = self else { return Err("a daemon is asked".to_owned()) };
        // Only a run creates a store: a mistyped path must not become a new one.
        drop(letters::open(path, false)?);
        let store = LetterStore::open_offline(path).map_err(|error| held(path, error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
        runtime.block_on(async {
            let changed = change(&store).await.map_err(error_text);
            store.finish().await.map_err(|error| error.to_string())?;
            changed
        })
    }
}

fn held(path: &Path, error: LetterError) -> String {
    match error {
        LetterError::NotOpened { is_held: true, reason, .. } => format!(
            "{reason} {}: while it runs, change letters through its admin listener; give its \
             address (`admin.listen`) instead of the store",
            path.display()
        )
        .replacen("writes it", "has the store open,", 1),
        other => error_text(other),
    }
}

fn error_text(error: LetterError) -> String {
    match error {
        LetterError::NoLetter(_) => format!("{error}; `greenroom dead-letters list` lists them"),
        LetterError::NoReplay(_) => {
            format!("{error}; `greenroom dead-letters replay --status` lists them")
        }
        other => other.to_string(),
    }
}

fn not_written(error: WriteError) -> String {
    match error {
        WriteError::Letters(error) => error_text(error),
        WriteError::Out(error) => error.to_string(),
    }
}

fn wanted(filter: &LettersFilter) -> Filter {
    let LettersFilter { ids, pool, handler, input, key, share, event, reason, group, since } =
        filter.clone();
    let since = since.as_deref().and_then(Filter::moment);
    Filter { ids, pool, handler, input, key, share, event, reason, group, since, upto: None }
}

/// The same filter for a daemon.
fn query(filter: &LettersFilter) -> Serializer<'static, String> {
    let mut query = Serializer::new(String::new());
    for id in &filter.ids {
        query.append_pair("id", &id.to_string());
    }
    let texts = [
        ("reason", &filter.reason),
        ("pool", &filter.pool),
        ("handler", &filter.handler),
        ("input", &filter.input),
        ("key", &filter.key),
        ("share", &filter.share),
        ("event", &filter.event),
        ("group", &filter.group),
        ("since", &filter.since),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            query.append_pair(name, text);
        }
    }
    query
}
