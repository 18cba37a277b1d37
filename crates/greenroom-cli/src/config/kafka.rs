//! What librdkafka says of the options of inputs, outputs and dead letters, before any broker is
//! asked.

use std::fs::File;

use greenroom_config::{Places, Problem, Problems};
use greenroom_kafka::{
    Unusable,
    output::{KafkaDeadLetters, KafkaSink},
    source::KafkaSource,
};

use super::options::{Config, InputKind, KafkaTls, OutputKind};

/// Reports files that cannot be read, and properties that cannot be used.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut checker = KafkaChecker { places, problems };
    for input in &config.inputs {
        let InputKind::Kafka(kafka) = &input.kind else { continue };
        let path = format!("inputs.{}.kafka", input.name);
        if checker.tls(&path, kafka.tls.as_ref())
            && let Ok(options) = kafka.options(None)
            && let Err(unusable) = KafkaSource::check(&options)
        {
            checker.unusable(&path, unusable);
        }
    }
    for output in &config.outputs {
        let OutputKind::Kafka(kafka) = &output.kind else { continue };
        let path = format!("outputs.{}.kafka", output.name);
        if checker.tls(&path, kafka.tls.as_ref())
            && let Ok(options) = kafka.options()
            && let Err(unusable) = KafkaSink::check(&options)
        {
            checker.unusable(&path, unusable);
        }
    }
    check_letters(config, &mut checker);
}

fn check_letters(config: &Config, checker: &mut KafkaChecker<'_>) {
    let Some(kafka) = &config.dead_letters.kafka else { return };
    let path = "dead_letters.kafka";
    if checker.tls(path, kafka.tls.as_ref())
        && let Err(unusable) = KafkaDeadLetters::check(&kafka.options())
    {
        checker.unusable(path, unusable);
    }
}

struct KafkaChecker<'a> {
    places: &'a Places,
    problems: &'a mut Problems,
}

impl KafkaChecker<'_> {
    fn error(&mut self, path: &str, message: String, help: &str) {
        self.problems.push(Problem::error(message, self.places.at(path).place).help(help));
    }

    /// Whether all files can be read.
    fn tls(&mut self, path: &str, tls: Option<&KafkaTls>) -> bool {
        for (option, file) in tls.iter().flat_map(|tls| tls.files()) {
            if let Err(error) = File::open(file) {
                let key = format!("{path}.tls.{option}");
                let shown = self.places.at(&key).show(&file.display().to_string());
                let help = "paths start at the directory of the configuration file";
                self.error(&key, format!("cannot read `{shown}`: {error}"), help);
                return false;
            }
        }
        true
    }

    /// Where the property or the option was written, if it was.
    fn unusable(&mut self, path: &str, Unusable { property, option, why }: Unusable) {
        let written = property.map(|name| format!("properties.{name}")).or(option);
        let written = written.map(|name| format!("{path}.{name}"));
        let at = written.filter(|at| self.places.has(at)).unwrap_or_else(|| path.to_owned());
        let help =
            "docs/kafka.md says what can be set; librdkafka's CONFIGURATION.md has all properties";
        self.error(&at, why, help);
    }
}
