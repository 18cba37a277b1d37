//! What an output is opened with.

use greenroom_bus::event::OrderBy;
use greenroom_config::Word;

use crate::{
    connection::Access,
    options::{KafkaOutput, KafkaPartitioner},
    unusable::Unusable,
};

/// Options that were looked at, and what follows from them.
pub(super) struct OutputSetup {
    pub(super) output: KafkaOutput,
    pub(super) access: Access,
    pub(super) key: Option<OrderBy>,
}

impl OutputSetup {
    /// # Errors
    /// What is missing, or said twice, or a key that is none.
    pub(super) fn new(output: KafkaOutput) -> Result<Self, Unusable> {
        let partitioner = match output.partitioner {
            KafkaPartitioner::Murmur2 => "murmur2_random",
            KafkaPartitioner::Crc32 => "consistent_random",
            KafkaPartitioner::Fnv1a => "fnv1a_random",
        };
        let access = output.connection().access(&[
            ("compression.type", output.compression.word()),
            ("message.max.bytes", &output.max_message.to_string()),
            ("partitioner", partitioner),
        ])?;
        if output.topic.trim().is_empty() {
            return Err("`topic` is empty; name the topic to publish to".to_owned().into());
        }
        let key = output.key.as_ref().map(|key| key.parse()).transpose();
        let key = key.map_err(|error| format!("key: {error}"))?;
        Ok(Self { output, access, key })
    }

    /// The same, connecting to no broker.
    pub(super) fn disconnected(self) -> Self {
        Self { access: self.access.disconnected(), ..self }
    }
}
