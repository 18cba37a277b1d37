//! What a source is opened with.

use greenroom_bus::record::Mapping;

use crate::{
    connection::Access,
    options::{KafkaInput, KafkaProtocol},
    unusable::Unusable,
};
use greenroom_config::Word;

/// Options that were looked at, and what follows from them.
#[derive(Debug, Clone)]
pub(crate) struct SourceSetup {
    pub(crate) input: KafkaInput,
    pub(crate) access: Access,
    /// The rule that makes events of records. `None`: they are CloudEvents.
    pub(crate) records: Option<Mapping>,
}

impl SourceSetup {
    /// # Errors
    /// What is missing, or said twice.
    pub(crate) fn new(input: KafkaInput, records: Option<Mapping>) -> Result<Self, Unusable> {
        let is_empty = |text: &str| text.trim().is_empty();
        let mut own = vec![
            ("group.protocol", input.protocol.word()),
            ("isolation.level", input.isolation.word()),
        ];
        own.extend(input.instance_id.as_deref().map(|id| ("group.instance.id", id)));
        let access = input.connection().access(&own)?;
        if is_empty(&input.group) {
            return Err("`group` is empty; name the consumer group".to_owned().into());
        }
        if input.topics.is_empty() || input.topics.iter().any(|topic| is_empty(topic)) {
            let why = "`topics` is empty; name at least one topic, or a pattern";
            return Err(why.to_owned().into());
        }
        if let Some(guard) = &input.guard {
            guard.check()?;
        }
        Ok(Self { input, access, records })
    }

    /// The same, connecting to no broker.
    pub(crate) fn disconnected(self) -> Self {
        Self { access: self.access.disconnected(), ..self }
    }

    /// What reports, logs and dead letters call the source.
    pub(super) fn name(&self) -> String {
        self.input.described()
    }

    /// The broker assigns partitions.
    pub(super) fn is_assigned_by_broker(&self) -> bool {
        self.input.protocol == KafkaProtocol::Consumer
    }
}
