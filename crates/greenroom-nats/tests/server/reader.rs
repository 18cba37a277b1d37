//! A source that a test reads by hand, without an engine.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use greenroom_bus::{
    event::Event,
    settlement::{Outcome, Refusal, Settled},
    source::{Committer, Partition, Pull, Receipts, Source, Taken},
};
use greenroom_nats::{
    NatsInput,
    source::{NatsSource, NatsSourceProbe},
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Reader {
    pub(crate) source: NatsSource,
    pub(crate) probe: NatsSourceProbe,
    committer: Arc<dyn Committer>,
    taken: VecDeque<(Taken, Arc<dyn Receipts>)>,
}

/// What was read.
pub(crate) struct Read {
    pub(crate) position: u64,
    /// Its id; for what is no event, its bytes.
    pub(crate) id: String,
    pub(crate) event: Option<Event>,
    receipts: Arc<dyn Receipts>,
}

impl Read {
    pub(crate) fn done(&self) {
        self.settle(Settled::Acknowledged(Outcome::Handled));
    }

    pub(crate) fn dead(&self) {
        self.settle(Settled::Acknowledged(Outcome::DeadLettered));
    }

    pub(crate) fn refuse(&self) {
        self.settle(Settled::Refused(Refusal::NoHandler));
    }

    fn settle(&self, how: Settled) {
        self.receipts.settled(self.position, how);
    }
}

impl Reader {
    pub(crate) async fn open(input: NatsInput) -> Self {
        let mut source = NatsSource::open(input, None).await.unwrap();
        let (probe, committer) = (source.probe(), source.committer().unwrap());
        Self { source, probe, committer, taken: VecDeque::new() }
    }

    /// What the next pull that gives something says.
    pub(crate) async fn pull(&mut self) -> Pull {
        let mut taken = Vec::new();
        let pull = timeout(PATIENCE, self.source.pull(&mut taken)).await.unwrap().unwrap();
        for one in taken {
            self.taken.push_back((one, self.source.receipts().unwrap()));
        }
        pull
    }

    pub(crate) async fn next(&mut self) -> Read {
        while self.taken.is_empty() {
            assert_eq!(self.pull().await, Pull::More);
        }
        let (Taken { position, event }, receipts) = self.taken.pop_front().unwrap();
        let id = match &event {
            Ok(event) => event.id().to_owned(),
            Err(malformed) => String::from_utf8_lossy(&malformed.raw).into_owned(),
        };
        Read { position, id, event: event.ok(), receipts }
    }

    pub(crate) async fn some(&mut self, count: usize) -> Vec<Read> {
        let mut some = Vec::new();
        while some.len() < count {
            some.push(self.next().await);
        }
        some
    }

    pub(crate) async fn ids(&mut self, count: usize) -> Vec<String> {
        self.some(count).await.into_iter().map(|read| read.id).collect()
    }

    /// Gives up the partition that is taken away.
    pub(crate) fn give_up(&mut self) -> Vec<Partition> {
        let revoking = self.source.revoking();
        revoking.iter().for_each(|partition| self.source.revoked(*partition));
        revoking
    }

    pub(crate) async fn commit(&self) {
        self.committer.commit().await.unwrap();
    }

    /// As an engine ends: the source goes, what was not started is refused, and all is committed.
    pub(crate) async fn end(self) {
        let Self { source, committer, taken, .. } = self;
        drop(source);
        for (taken, receipts) in taken {
            receipts.settled(taken.position, Settled::Refused(Refusal::Dropped));
        }
        committer.commit().await.unwrap();
    }

    /// The source goes, and what was taken stays in hand.
    pub(crate) fn close(self) -> Arc<dyn Committer> {
        self.committer
    }

    pub(crate) fn committer(&self) -> &dyn Committer {
        &*self.committer
    }
}
