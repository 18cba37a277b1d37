//! A stream of NATS JetStream.

use std::sync::Arc;

use async_nats::jetstream::{self, stream::Config};
use greenroom_bus::{BoxFuture, source::Source};
use greenroom_nats::{NatsInput, source::NatsSource};
use tokio::runtime::Handle;

use super::{Channel, Publisher, unique};
use crate::{Failure, event, load::Job, sources::RUN_AHEAD};

/// Publishes that wait for the server at once.
const UNDER_WAY: usize = 500;

/// Messages that may be delivered and not acknowledged: what the engine has room for, as the
/// program computes it.
const CAPACITY: usize = RUN_AHEAD + 2_000;

pub struct Stream {
    address: String,
    name: String,
    context: jetstream::Context,
}

impl Stream {
    pub async fn open(address: String) -> Result<Self, Failure> {
        let (name, context) = (unique()?, context(&address).await?);
        let config = Config { name: name.clone(), ..Config::default() };
        context.create_stream(config).await?;
        Ok(Self { address, name, context })
    }
}

async fn context(address: &str) -> Result<jetstream::Context, Failure> {
    Ok(jetstream::new(async_nats::connect(address).await?))
}

impl Channel for Stream {
    fn source(&self) -> BoxFuture<'_, Result<Box<dyn Source>, Failure>> {
        let input = NatsInput {
            capacity: Some(CAPACITY),
            ..NatsInput::new(&self.address, &self.name, "bench")
        };
        Box::pin(async { Ok(Box::new(NatsSource::open(input, None).await?) as _) })
    }

    fn publisher(&self) -> BoxFuture<'_, Result<Arc<dyn Publisher>, Failure>> {
        Box::pin(async {
            let (context, handle) = (context(&self.address).await?, Handle::current());
            Ok(Arc::new(Publishing { context, subject: self.name.clone(), handle }) as _)
        })
    }

    fn remove(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async {
            self.context.delete_stream(&self.name).await?;
            Ok(())
        })
    }
}

struct Publishing {
    context: jetstream::Context,
    subject: String,
    handle: Handle,
}

impl Publisher for Publishing {
    fn publish(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), Failure>> {
        let (context, subject) = (self.context.clone(), self.subject.clone());
        let stored = self.handle.spawn(async move {
            for some in jobs.chunks(UNDER_WAY) {
                let mut answers = Vec::new();
                for job in some {
                    let json = event::json(job)?;
                    answers.push(context.publish(subject.clone(), json.into()).await?);
                }
                for answer in answers {
                    answer.await?;
                }
            }
            Ok(())
        });
        Box::pin(async { stored.await? })
    }
}
