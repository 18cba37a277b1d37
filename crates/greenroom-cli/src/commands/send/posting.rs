//! Requests, each posted after the answer to the one before.

use std::time::Duration;

use greenroom::Backoff;
use greenroom_bus::http::{NotPosted, Posted, Poster};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{
    lot::{Lot, Read},
    stop::Stop,
    tally::Tally,
};
use crate::cli::SendArgs;

/// The first wait before a retry, and the longest one, unless the server asks for more.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Posts events in order.
pub(super) struct Posting<'a> {
    pub(super) args: &'a SendArgs,
    pub(super) poster: &'a Poster,
    pub(super) tally: &'a Tally,
}

/// The answer of any input.
#[derive(Deserialize, Default)]
struct InputAnswer {
    #[serde(default)]
    stored: u64,
    #[serde(default)]
    repeated: u64,
    error: Option<String>,
    index: Option<usize>,
}

/// The result of a lot.
enum LotFate {
    Stored(InputAnswer),
    /// This event in it is bad.
    Bad(usize, String),
    /// It is larger than the input accepts at once.
    TooLarge(String),
}

impl Posting<'_> {
    /// Posts the events, and stops at the first one that is refused.
    pub(super) async fn send(&self, events: &mut Vec<Read>) -> Result<(), Stop> {
        while !events.is_empty() {
            let lot = Lot::take(events, self.args.batch as usize, self.args.batch_bytes);
            self.store(lot).await?;
        }
        Ok(())
    }

    /// Stores a lot, in parts if some of it is refused: the events before that first.
    async fn store(&self, lot: Lot) -> Result<(), Stop> {
        let mut parts = vec![(lot, None)];
        while let Some((lot, then)) = parts.pop() {
            if lot.len() > 0 {
                match self.post(&lot).await? {
                    LotFate::Stored(told) => self.tally.stored(told.stored, told.repeated),
                    LotFate::Bad(place, why) => {
                        let why = format!("{}: {why}", self.tally.place(lot.positions[place]));
                        let (before, after) = lot.around(place);
                        parts.push((after, then));
                        parts.push((before, Some(why)));
                        continue;
                    }
                    LotFate::TooLarge(why) if lot.len() == 1 => {
                        self.refused(format!("{}: {why}", self.tally.place(lot.positions[0])))?;
                    }
                    LotFate::TooLarge(_) => {
                        let (first, rest) = lot.halves();
                        parts.push((rest, then));
                        parts.push((first, None));
                        continue;
                    }
                }
            }
            if let Some(why) = then {
                self.refused(why)?;
            }
        }
        Ok(())
    }

    fn refused(&self, why: String) -> Result<(), Stop> {
        if !self.args.skip_bad {
            return Err(Stop::BadEvent(why));
        }
        self.tally.rejected(&why);
        Ok(())
    }

    /// Posts until there is a final answer.
    async fn post(&self, lot: &Lot) -> Result<LotFate, Stop> {
        let (since, mut attempt) = (Instant::now(), 0);
        loop {
            attempt += 1;
            let (why, wait) = match self.poster.post(&lot.events, attempt).await {
                Ok(posted) => match came(&posted, lot.len())? {
                    Ok(came) => return Ok(came),
                    Err(why) => (why, posted.retry_after),
                },
                Err(NotPosted { text, untrusted: true, .. }) => return Err(Stop::Failed(text)),
                Err(none) => (none.text, None),
            };
            let from = self.tally.place(lot.positions[0]);
            if since.elapsed() >= self.args.retry_for {
                let text = format!(
                    "from {from} on, nothing was stored for {:.0?}: {why}; send the file again: \
                     the input stores no event twice that it remembers",
                    since.elapsed()
                );
                return Err(Stop::Failed(text));
            }
            self.tally.waits(&why);
            let (least, most) = BACKOFF;
            let own = Backoff::new(least, most).wait(attempt, 0.5);
            let left = self.args.retry_for.saturating_sub(since.elapsed());
            sleep(wait.unwrap_or(own).min(left.max(least))).await;
        }
    }
}

/// The meaning of an answer. The inner error may be temporary.
fn came(posted: &Posted, events: usize) -> Result<Result<LotFate, String>, Stop> {
    let told: InputAnswer = serde_json::from_slice(&posted.body).unwrap_or_default();
    let status = posted.status;
    let why = match &told.error {
        Some(error) => format!("{status}: {error}"),
        None => format!("status {status}"),
    };
    Ok(Ok(match (status, told.index) {
        (202, _) => LotFate::Stored(told),
        (400 | 413, Some(index)) if index < events => LotFate::Bad(index, why),
        (400, _) if events == 1 => LotFate::Bad(0, why),
        (413, _) => LotFate::TooLarge(why),
        (408 | 425 | 429 | 500.., _) => return Ok(Err(why)),
        (401, _) => {
            let next = "give the token with GREENROOM_SEND_TOKEN or `--token`";
            return Err(Stop::Failed(format!("{why}: the sender is not authorized; {next}")));
        }
        _ => {
            let next = "is this the address of an `http` input of greenroom, with its `path`?";
            return Err(Stop::Failed(format!("{why}; {next}")));
        }
    }))
}
