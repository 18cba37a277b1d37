//! Which process reads a consumer: a lease in a key-value bucket (N03).
//!
//! ```text
//!             the entry is free; its holder is gone, or has not written for its life
//!   waiting ────────────────────────────────────────────────────────────────▶ ours ──▶ released
//!      ▲                                                                       │
//!      └──────────── the entry is another's: what is in hand is given up ──────┘
//! ```
//!
//! Two processes that read one consumer would each have half of a key's messages. The holder
//! rewrites its entry four times in the life of the lease. Each write names the revision that it
//! replaces, so the server refuses one of two concurrent writes. A process that waits takes the
//! lease once the revision has stayed the same for the life that the entry names, by its own clock.
//! The holder counts that life from before its write. So it knows that its lease is over no later
//! than any other process can take it, even if it was frozen in between, and gives the engine
//! nothing from then on until another write is accepted.
//!
//! The life is half of `ack_wait`: a silent holder has lost its lease before the server delivers
//! its messages in hand again. Until then, the next holder holds back all newer ones (N06). So a
//! lease can be taken at once from a process that has no connection, and a restart after a crash
//! need not wait for it: the entry names a subject that its holder listens on, and the server
//! reports if it has no listener. A frozen process still has its connection.

use std::time::Duration;

use async_nats::{
    Client, Request, RequestErrorKind,
    jetstream::{
        Context,
        kv::{Config, Entry, Operation, Store, UpdateErrorKind},
    },
};
use futures_util::StreamExt;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{consumer::Wanted, shared::Shared};
use crate::connection::{Connection, because};

/// The bucket. An operator may make it if this user may not.
const BUCKET: &str = "greenroom-leases";

/// After this many failures in a row without ever reading a lease, the source works without one.
const ATTEMPTS: u32 = 3;

/// The name of a holder whose entry names none.
const UNNAMED: &str = "another process";

/// A process that waits looks so often at least.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The timeout for an answer. The holder waits less: its messages in hand have to be reported as in
/// progress during that time.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// A holder that has a connection, and is not frozen, answers within this time.
const PRESENT_WITHIN: Duration = Duration::from_millis(500);

/// Another process, or an input of this one, may be about to end: the lease is checked again after
/// these times.
const ENDING: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// The state of a lease.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tenure {
    /// It is ours until then.
    Ours(Instant),
    /// This process has it.
    Others(String),
    /// The server does not say, for this reason.
    Unknown(String),
    /// This account cannot have one, for this reason.
    Impossible(String),
}

/// The lease of one consumer.
pub(super) struct Lease {
    stream: String,
    key: String,
    /// How long it lives after a write.
    life: Duration,
    /// The entry: the life in milliseconds, the process, and the subject that it listens on.
    value: String,
    /// Listens there.
    presence: JoinHandle<()>,
    store: Option<Store>,
    /// The entry as it was written last; `None` while it is not ours.
    revision: Option<u64>,
    /// The entry of another process, and since when it is known not to have changed.
    seen: Option<(u64, Instant)>,
    failures: u32,
    /// When to look again.
    pub(super) look_at: Instant,
}

impl Lease {
    pub(super) fn new(
        connection: &Connection,
        stream: &str,
        consumer: &str,
        ack_wait: Duration,
    ) -> Self {
        let life = ack_wait / 2;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (host, process) = (host.trim(), std::process::id());
        let subject = connection.client.new_inbox();
        Self {
            stream: stream.to_owned(),
            key: format!("{}.{}", escaped(stream), escaped(consumer)),
            life,
            value: format!("{} {host}/{process} {subject}", life.as_millis()),
            presence: tokio::spawn(be_present(connection.client.clone(), subject)),
            store: None,
            revision: None,
            seen: None,
            failures: 0,
            look_at: Instant::now(),
        }
    }

    /// Takes it, keeps it, or finds out which process has it.
    pub(super) async fn look(&mut self, connection: &Connection) -> Tenure {
        let (began, pace) = (Instant::now(), self.life / 4);
        if !connection.is_up() {
            self.look_at = began + pace.min(LOOK_EVERY);
            return Tenure::Unknown("no connection".to_owned());
        }
        let within = match self.revision {
            Some(_) => pace.clamp(LOOK_EVERY, ANSWER_WITHIN),
            None => ANSWER_WITHIN,
        };
        let tenure = match timeout(within, self.ask(connection)).await {
            Ok(Ok(None)) => Tenure::Ours(began + self.life),
            Ok(Ok(Some(process))) => Tenure::Others(process),
            Ok(Err(tenure)) => tenure,
            Err(_) => Tenure::Unknown("no answer".to_owned()),
        };
        let ours = self.revision.is_some();
        self.look_at = Instant::now() + if ours { pace } else { pace.min(LOOK_EVERY) };
        self.judge(tenure)
    }

    /// After repeated failures the source works without a lease, unless one was ever read.
    fn judge(&mut self, tenure: Tenure) -> Tenure {
        let Tenure::Unknown(why) = tenure else {
            self.failures = 0;
            return tenure;
        };
        self.failures += 1;
        let never_seen = self.revision.is_none() && self.seen.is_none();
        match never_seen && self.failures >= ATTEMPTS {
            true => Tenure::Impossible(why),
            false => Tenure::Unknown(why),
        }
    }

    /// The process that has it; `None` if it is ours.
    async fn ask(&mut self, connection: &Connection) -> Result<Option<String>, Tenure> {
        let mut watched = connection.watch();
        let mut asking = std::pin::pin!(self.write_or_take(connection));
        loop {
            tokio::select! {
                biased;
                answer = &mut asking => return answer.map_err(Tenure::Unknown),
                // A denied request gets no other answer.
                () = watched.changed() => if let Some(subject) = watched.denied(BUCKET) {
                    return Err(Tenure::Impossible(format!("publishing to {subject} is denied")));
                },
            }
        }
    }

    async fn write_or_take(
        &mut self,
        Connection { client, jetstream, .. }: &Connection,
    ) -> Result<Option<String>, String> {
        let store = match self.store.clone() {
            Some(store) => store,
            None => self.bucket(jetstream).await?,
        };
        self.store = Some(store.clone());
        if let Some(revision) = self.revision
            && self.write(&store, revision).await?
        {
            return Ok(None);
        }
        self.take(&store, client).await
    }

    /// Finds the bucket, or makes it as safe as the stream.
    async fn bucket(&self, jetstream: &Context) -> Result<Store, String> {
        if let Ok(store) = jetstream.get_key_value(BUCKET).await {
            return Ok(store);
        }
        let stream = jetstream.get_stream(&self.stream).await.map_err(|error| because(&error))?;
        let made = jetstream.create_key_value(Config {
            bucket: BUCKET.to_owned(),
            description: "which greenroom process reads which consumer".to_owned(),
            num_replicas: stream.cached_info().config.num_replicas,
            ..Config::default()
        });
        match made.await {
            Ok(store) => Ok(store),
            // Another process may have created it in between.
            Err(error) => jetstream.get_key_value(BUCKET).await.map_err(|_| because(&error)),
        }
    }

    /// Whether the entry was at this revision, and is ours now.
    async fn write(&mut self, store: &Store, revision: u64) -> Result<bool, String> {
        match store.update(&self.key, self.value.clone().into(), revision).await {
            Ok(revision) => {
                (self.revision, self.seen) = (Some(revision), None);
                Ok(true)
            }
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
            Err(error) => {
                // The bucket may be gone: it is looked for, and made again.
                self.store = None;
                Err(because(&error))
            }
        }
    }

    async fn take(&mut self, store: &Store, client: &Client) -> Result<Option<String>, String> {
        let entry = store.entry(&self.key).await.map_err(|error| because(&error))?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let mut other = None;
        if let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) {
            let text = String::from_utf8_lossy(&entry.value);
            let process = text.split(' ').nth(1).unwrap_or(UNNAMED).to_owned();
            // Ours, if the answer to a write has not come.
            let is_ours = text == self.value;
            if !is_ours && !self.is_over(&entry, &text) && !is_gone(client, &text).await {
                self.revision = None;
                return Ok(Some(process));
            }
            other = Some(process);
        }
        if self.write(store, revision).await? {
            return Ok(None);
        }
        self.revision = None;
        Ok(Some(other.unwrap_or_else(|| UNNAMED.to_owned())))
    }

    /// Whether another process has not written for the life that its entry names.
    fn is_over(&mut self, entry: &Entry, text: &str) -> bool {
        let now = Instant::now();
        match self.seen {
            Some((revision, since)) if revision == entry.revision => {
                let over = since.checked_add(life_in(text).unwrap_or(self.life));
                over.is_some_and(|over| now >= over)
            }
            _ => {
                self.seen = Some((entry.revision, now));
                false
            }
        }
    }

    /// Whether another process had it when it was last looked.
    pub(super) fn is_others(&self) -> bool {
        self.revision.is_none() && self.seen.is_some()
    }

    /// The connection is another one.
    pub(super) fn connect_anew(&mut self, connection: &Connection) {
        self.store = None;
        self.presence.abort();
        let subject = self.value.rsplit(' ').next().unwrap_or_default().to_owned();
        self.presence = tokio::spawn(be_present(connection.client.clone(), subject));
    }

    /// Lets the next process take it at once.
    pub(super) async fn release(&mut self) {
        if let (Some(store), Some(revision)) = (&self.store, self.revision.take()) {
            // A lease that cannot be released ends with its life.
            let _ = store.delete_expect_revision(&self.key, Some(revision)).await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.presence.abort();
    }
}

/// The lease of a consumer that is opened, and whether another process keeps this one from reading.
pub(super) async fn open_lease(
    connection: &Connection,
    shared: &Shared,
    wanted: &Wanted,
    ack_wait: Duration,
) -> (Option<Lease>, bool) {
    let consumer = wanted.name.as_str();
    let mut lease = Lease::new(connection, &wanted.stream, consumer, ack_wait);
    let mut tenure = lease.look(connection).await;
    for pause in ENDING {
        if matches!(tenure, Tenure::Others(_)) {
            sleep(pause).await;
            tenure = lease.look(connection).await;
        }
    }
    match tenure {
        Tenure::Ours(until) => {
            shared.lease_until(Some(until));
            return (Some(lease), false);
        }
        Tenure::Impossible(why) => {
            tell_without_lease(shared, consumer, &why);
            return (None, false);
        }
        Tenure::Others(process) => tracing::info!(
            consumer,
            process,
            "another process reads this consumer: this one waits until that one ends"
        ),
        Tenure::Unknown(error) => {
            tracing::warn!(consumer, error, "the lease of the consumer is not known yet");
        }
    }
    shared.look(|state| state.stats.waiting = 1);
    (Some(lease), true)
}

/// A warning to an operator about a consumer that any process may read.
pub(super) fn tell_without_lease(shared: &Shared, consumer: &str, why: &str) {
    shared.look(|state| state.stats.without_lease = 1);
    let remark = format!(
        "the key-value bucket {BUCKET} cannot be used ({why}): the consumer {consumer} is read without a \
         lease, so a second process would read beside this one, and keys would be handled by both; run \
         one process, or make the bucket or allow this user to, and start it anew"
    );
    shared.statuses.without_lease(shared.partition, remark);
    tracing::warn!(
        consumer,
        why,
        "the key-value bucket {BUCKET} cannot be used: this consumer is read without a lease, and a second process would read beside this one; make the bucket, or allow this user to"
    );
}

/// Answers whatever comes to this subject.
async fn be_present(client: Client, subject: String) {
    let Ok(mut asked) = client.subscribe(subject).await else { return };
    while let Some(message) = asked.next().await {
        if let Some(reply) = message.reply {
            // If this gets lost, the other process waits, and asks again.
            let _ = client.publish(reply, "here".into()).await;
        }
    }
}

/// Whether the process that has written this has no connection. If there is no answer, it may be
/// frozen, or not be allowed to answer.
async fn is_gone(client: &Client, value: &str) -> bool {
    let Some(subject) = value.split(' ').nth(2) else { return false };
    let request = Request::new().timeout(Some(PRESENT_WITHIN));
    let answer = client.send_request(subject.to_owned(), request).await;
    answer.is_err_and(|error| error.kind() == RequestErrorKind::NoResponders)
}

/// As a part of a key.
fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        byte => format!("={byte:02x}"),
    };
    name.bytes().map(escape).collect()
}

fn life_in(value: &str) -> Option<Duration> {
    value.split(' ').next()?.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n03_the_key_of_a_lease_is_one_for_any_name() {
        assert_eq!(escaped("orders_2-a"), "orders_2-a");
        assert_eq!(escaped("$a=ä"), "=24a=3d=c3=a4");
    }

    #[test]
    fn n03_a_lease_lives_as_long_as_its_entry_says() {
        assert_eq!(life_in("15000 web-1/4711 _INBOX.x"), Some(Duration::from_secs(15)));
        assert_eq!(life_in("what"), None);
    }
}
