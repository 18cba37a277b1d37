//! Topics as inputs, outputs and destinations of dead letters in a configuration. A build without
//! the feature `client` reads the options, but opens nothing.

mod input;
mod letters;
mod output;

pub use self::{input::INPUT, letters::LETTERS, output::OUTPUT};
pub use crate::{
    connection::{KafkaMechanism, KafkaSasl, KafkaTls},
    options::{
        FormerConsumer, GuardOptions, KafkaCompression, KafkaInput, KafkaIsolation, KafkaLetters,
        KafkaOutput, KafkaPartitioner, KafkaProtocol, KafkaSinkMode,
    },
};
