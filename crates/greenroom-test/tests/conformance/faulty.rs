//! A broker's source with one fault.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use greenroom_bus::{
    BoxFuture,
    settlement::{Outcome, Settled},
    source::{
        Committer, Partition, PartitionStanding, Pull, Pulling, Receipts, Source, SourceError,
        Standing, Taken,
    },
};
use greenroom_test::conformance::{Body, BrokerConnector, Clock, Connector, Item, Place, Stored};

/// What is wrong with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Every fiftieth event is not given, and no error says so.
    LosesEvents,
    /// Two events of a pull that follow each other in a key change places.
    SwapsEvents,
    /// Another source begins from the start, whatever was committed.
    ForgetsCommits,
    /// After its first commit, it says that it has stored what it has not.
    PretendsToCommit,
    /// It gives of partitions that are paused.
    IgnoresPause,
    /// What was paused once stays so: it takes the list for an edge.
    NeverResumes,
    /// It takes what it gives for acknowledged.
    SettlesEarly,
    /// It takes what it gave for acknowledged when it is dropped.
    SettlesWhenDropped,
    /// It has events in its hands that it gives after their partition was taken away.
    GivesWhatWasRevoked,
    /// It says nothing of what is no event.
    SwallowsMalformed,
    /// A position that is never given holds up its commits.
    WaitsForGaps,
    /// A pull that is dropped takes its events along.
    LosesWithDroppedPulls,
    /// It does not notice that a partition is taken away.
    IgnoresRevocations,
}

pub(crate) struct Faulty(pub(crate) Fault);

impl Connector for Faulty {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let place = BrokerConnector::default().place()?;
        Ok(Box::new(FaultyPlace { fault: self.0, place, published: Vec::new(), opened: 0 }))
    }
}

struct FaultyPlace {
    fault: Fault,
    place: Box<dyn Place>,
    published: Vec<Item>,
    opened: u32,
}

/// What stands for a gap, and is never given.
fn is_gap(taken: &Taken) -> bool {
    taken.event.as_ref().is_err_and(|malformed| malformed.raw == b"gap")
}

impl Place for FaultyPlace {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        let as_published = |item: &Item| match (&item.body, self.fault) {
            (Body::Gap, Fault::WaitsForGaps) => {
                Item { body: Body::Malformed(b"gap".to_vec()), ..item.clone() }
            }
            _ => item.clone(),
        };
        let items: Vec<Item> = items.iter().map(as_published).collect();
        self.published.extend(items.clone());
        Box::pin(async move { self.place.publish(&items).await })
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async move {
            self.opened += 1;
            if self.fault == Fault::ForgetsCommits && self.opened > 1 {
                self.place = BrokerConnector::default().place()?;
                self.place.publish(&self.published).await?;
            }
            let source = self.place.open().await?;
            Ok(Box::new(FaultySource::new(self.fault, source)) as _)
        })
    }

    fn revoke(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        match self.fault {
            Fault::IgnoresRevocations => Box::pin(std::future::ready(Ok(()))),
            _ => self.place.revoke(partition),
        }
    }

    fn assign(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        self.place.assign(partition)
    }

    fn stored(&self) -> Option<Stored> {
        self.place.stored()
    }
}

/// Something that was given, and who hears of it.
type Known = (Arc<dyn Receipts>, u64);

struct FaultySource {
    fault: Fault,
    source: Box<dyn Source>,
    given: u64,
    paused: Vec<Partition>,
    /// Of each partition an event that was given before.
    before: HashMap<Partition, Taken>,
    /// What it gives next, out of turn.
    out_of_turn: Option<(Partition, Taken)>,
    partition: Partition,
    known: Mutex<Vec<Known>>,
}

fn copied(taken: &Taken) -> Option<Taken> {
    let event = taken.event.as_ref().ok()?.clone();
    Some(Taken { position: taken.position, event: Ok(event) })
}

fn key(taken: &Taken) -> Option<&str> {
    taken.event.as_ref().ok()?.subject().map(|key| &**key)
}

impl FaultySource {
    fn new(fault: Fault, source: Box<dyn Source>) -> Self {
        Self {
            fault,
            source,
            given: 0,
            paused: Vec::new(),
            before: HashMap::new(),
            out_of_turn: None,
            partition: Partition::ONLY,
            known: Mutex::default(),
        }
    }

    fn spoil(&mut self, into: &mut Vec<Taken>) {
        match self.fault {
            Fault::LosesEvents => into.retain(|_| {
                self.given += 1;
                !self.given.is_multiple_of(50)
            }),
            Fault::SwapsEvents => swap(into),
            Fault::SwallowsMalformed => into.retain(|taken| taken.event.is_ok()),
            Fault::WaitsForGaps => into.retain(|taken| !is_gap(taken)),
            Fault::SettlesEarly | Fault::SettlesWhenDropped => self.remember(into),
            Fault::GivesWhatWasRevoked => {
                if let Some(taken) = into.last().and_then(copied) {
                    self.before.insert(self.partition, taken);
                }
            }
            _ => {}
        }
    }

    /// Settles what was given before, or keeps it in mind for later.
    fn remember(&mut self, given: &[Taken]) {
        let Some(receipts) = self.source.receipts() else { return };
        let mut known = self.known.lock().unwrap();
        known.extend(given.iter().map(|taken| (receipts.clone(), taken.position)));
        if self.fault == Fault::SettlesEarly {
            settle_all(&mut known);
        }
    }
}

fn settle_all(known: &mut Vec<Known>) {
    for (receipts, position) in known.drain(..) {
        receipts.settled(position, Settled::Acknowledged(Outcome::Handled));
    }
}

/// The first two of one key, with all but their positions.
fn swap(items: &mut [Taken]) {
    for (first, second) in (0..items.len()).flat_map(|a| (a + 1..items.len()).map(move |b| (a, b)))
    {
        if key(&items[first]).is_some() && key(&items[first]) == key(&items[second]) {
            let (before, behind) = items.split_at_mut(second);
            std::mem::swap(&mut before[first].event, &mut behind[0].event);
            return;
        }
    }
}

impl Source for FaultySource {
    fn describe(&self) -> String {
        "faulty".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            if let Some((partition, taken)) = self.out_of_turn.take() {
                self.partition = partition;
                into.push(taken);
                return Ok(Pull::More);
            }
            let pull = self.source.pull(into).await?;
            self.partition = self.source.partition();
            self.spoil(into);
            match pull {
                // A pull may not give nothing.
                Pull::More if into.is_empty() => self.pull(into).await,
                pull => {
                    if self.fault == Fault::LosesWithDroppedPulls {
                        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                    }
                    Ok(pull)
                }
            }
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        let pretends = self.fault == Fault::PretendsToCommit;
        let commits = |committer| Commits { committer, pretends, made: AtomicBool::new(false) };
        self.source.committer().map(|committer| Arc::new(commits(committer)) as _)
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.source.receipts()
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.partition
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        match self.fault {
            Fault::IgnoresPause => {}
            Fault::NeverResumes => {
                self.paused.extend(paused);
                self.source.set_paused(&self.paused);
            }
            _ => self.source.set_paused(paused),
        }
    }

    fn revoking(&mut self) -> Vec<Partition> {
        self.source.revoking()
    }

    fn revoked(&mut self, partition: Partition) {
        self.source.revoked(partition);
        let taken = self.before.remove(&partition);
        self.out_of_turn = taken.map(|taken| (partition, taken));
    }
}

impl Drop for FaultySource {
    fn drop(&mut self) {
        if self.fault == Fault::SettlesWhenDropped {
            settle_all(&mut self.known.lock().unwrap());
        }
    }
}

struct Commits {
    committer: Arc<dyn Committer>,
    pretends: bool,
    made: AtomicBool,
}

impl Committer for Commits {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        match self.made.swap(true, Ordering::Relaxed) && self.pretends {
            true => Box::pin(std::future::ready(Ok(()))),
            false => self.committer.commit(),
        }
    }

    fn standing(&self) -> Standing {
        self.committer.standing()
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        self.committer.partitions()
    }
}
