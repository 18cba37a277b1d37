//! A source that a test reads by hand, without an engine.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use greenroom_bus::{
    event::Event,
    settlement::{Outcome, Refusal, Settled},
    source::{Committer, Pull, Receipts, Source, Taken},
};
use greenroom_redis::{RedisInput, source::RedisSource};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Reader {
    pub(crate) source: RedisSource,
    pub(crate) committer: Arc<dyn Committer>,
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
        self.receipts.settled(self.position, Settled::Acknowledged(Outcome::Handled));
    }

    pub(crate) fn refuse(&self) {
        self.receipts.settled(self.position, Settled::Refused(Refusal::NoHandler));
    }
}

impl Reader {
    pub(crate) async fn open(input: RedisInput) -> Self {
        let mut source = RedisSource::open(input, None).await.unwrap();
        let committer = source.committer().unwrap();
        Self { source, committer, taken: VecDeque::new() }
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

    /// Reads so many, and settles them: what was read, in this order.
    pub(crate) async fn finish(&mut self, count: usize) -> Vec<String> {
        let read = self.some(count).await;
        read.iter().for_each(Read::done);
        read.into_iter().map(|read| read.id).collect()
    }

    /// Gives up what is taken away.
    pub(crate) fn give_up(&mut self) {
        self.taken.clear();
        let revoking = self.source.revoking();
        revoking.into_iter().for_each(|partition| self.source.revoked(partition));
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
        committer.end();
    }
}

pub(crate) fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}
