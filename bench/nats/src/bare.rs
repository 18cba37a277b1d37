//! A loop over the client's own pull consumer, with an explicit ack for each message.

use std::{hint::black_box, time::Instant};

use async_nats::jetstream::{
    self,
    consumer::{AckPolicy, pull},
};
use futures_util::StreamExt;
use greenroom_bus::event::Event;

use crate::{BATCH, CAPACITY, Failed, stream::Filled};

/// Reads all, on a task as the engine does: when the server had all acknowledgements.
pub async fn read(filled: &Filled, consumer: &str, is_parsed: bool) -> Result<Instant, Failed> {
    let client = async_nats::connect(&filled.address).await?;
    let stream = jetstream::new(client.clone()).get_stream(&filled.name).await?;
    let config = pull::Config {
        durable_name: Some(consumer.to_owned()),
        ack_policy: AckPolicy::Explicit,
        max_ack_pending: CAPACITY as i64,
        ..pull::Config::default()
    };
    let consumer_of_client = stream.create_consumer(config).await?;
    let count = filled.count;
    let reading = tokio::spawn(async move {
        let messages = consumer_of_client.stream().max_messages_per_batch(BATCH).messages();
        let mut messages = messages.await?.take(count as usize);
        while let Some(message) = messages.next().await {
            let message = message?;
            if is_parsed {
                black_box(Event::parse(&message.payload)?);
            }
            message.ack().await?;
        }
        client.flush().await?;
        Ok::<(), Failed>(())
    });
    let acknowledged = filled.acknowledged(consumer).await?;
    reading.await??;
    Ok(acknowledged)
}
