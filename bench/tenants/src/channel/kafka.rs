//! A topic of Kafka.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::{BoxFuture, source::Source};
use greenroom_kafka::{KafkaInput, source::KafkaSource};
use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::RDKafkaErrorCode,
    producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer},
};

use super::{Channel, Publisher, unique};
use crate::{Failure, event, load::Job};

pub const PARTITIONS: i32 = 12;
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Topic {
    address: String,
    name: String,
}

impl Topic {
    pub async fn open(address: String) -> Result<Self, Failure> {
        let topic = Self { address, name: unique()? };
        let new = NewTopic::new(&topic.name, PARTITIONS, TopicReplication::Fixed(1));
        for made in topic.admin()?.create_topics(&[new], &options()).await? {
            made.map_err(|(name, code)| format!("topic {name} cannot be made: {code}"))?;
        }
        topic.has_leaders()?;
        Ok(topic)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.address);
        config
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>, Failure> {
        Ok(self.config().create()?)
    }

    /// Waits until all of its partitions have leaders.
    fn has_leaders(&self) -> Result<(), Failure> {
        let consumer: BaseConsumer = self.config().create()?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let found = consumer.fetch_metadata(Some(&self.name), PATIENCE)?;
            let partitions = found.topics().iter().flat_map(|topic| topic.partitions());
            if partitions.filter(|partition| partition.leader() >= 0).count() == 12 {
                return Ok(());
            }
        }
        Err(format!("topic {} does not come", self.name).into())
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(PATIENCE))
}

impl Channel for Topic {
    fn source(&self) -> BoxFuture<'_, Result<Box<dyn Source>, Failure>> {
        let input = KafkaInput::new(&self.address, &self.name, [&self.name]);
        Box::pin(async { Ok(Box::new(KafkaSource::open(input, None)?) as _) })
    }

    fn publisher(&self) -> BoxFuture<'_, Result<Arc<dyn Publisher>, Failure>> {
        Box::pin(async {
            let producer = self.config().set("linger.ms", "0").create()?;
            Ok(Arc::new(Producing { producer: Arc::new(producer), topic: self.name.clone() }) as _)
        })
    }

    fn remove(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async {
            self.admin()?.delete_topics(&[&self.name], &options()).await?;
            Ok(())
        })
    }
}

struct Producing {
    producer: Arc<ThreadedProducer<DefaultProducerContext>>,
    topic: String,
}

impl Producing {
    fn send(&self, job: &Job) -> Result<(), Failure> {
        let (key, value) = (job.key.to_string(), event::json(job)?);
        let mut record = BaseRecord::to(&self.topic).key(&key).payload(&value);
        while let Err((error, again)) = self.producer.send(record) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                return Err(error.into());
            }
            record = again;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Publisher for Producing {
    fn publish(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), Failure>> {
        let sent = jobs.iter().try_for_each(|job| self.send(job));
        let producer = self.producer.clone();
        Box::pin(async move {
            sent?;
            Ok(tokio::task::spawn_blocking(move || producer.flush(PATIENCE)).await??)
        })
    }
}
