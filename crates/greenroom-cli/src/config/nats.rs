//! What the library says of the options of `nats` inputs, outputs and dead letters, before any
//! server is asked.

use std::{fs::File, path::PathBuf};

use greenroom_config::{Places, Problem, Problems};

use super::options::{Config, InputKind, NatsTls, OutputKind};

/// Reports files that cannot be read, keys and subjects that are none.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut checker = NatsChecker { places, problems };
    for input in &config.inputs {
        let InputKind::Nats(nats) = &input.kind else { continue };
        let path = format!("inputs.{}.nats", input.name);
        checker.tls(&path, nats.tls.as_ref());
        if let Some(Err(why)) = nats.key.as_ref().map(|key| key.to_library()) {
            let help = "for example `key: { template: \"{2}.{3}\" }`";
            checker.error(&format!("{path}.key"), why, help);
        }
    }
    for output in &config.outputs {
        let OutputKind::Nats(nats) = &output.kind else { continue };
        let path = format!("outputs.{}.nats", output.name);
        checker.tls(&path, nats.tls.as_ref());
        if let Err(why) = nats.options() {
            let help = "for example `orders.new` or `orders.{subject}.{type}`";
            checker.error(&format!("{path}.subject"), why, help);
        }
    }
    if let Some(nats) = &config.dead_letters.nats {
        checker.tls("dead_letters.nats", nats.tls.as_ref());
        if let Err(why) = nats.library_subject() {
            checker.error("dead_letters.nats.subject", why, "for example `letters.orders`");
        }
    }
}

struct NatsChecker<'a> {
    places: &'a Places,
    problems: &'a mut Problems,
}

impl NatsChecker<'_> {
    fn error(&mut self, path: &str, message: String, help: &str) {
        self.problems.push(Problem::error(message, self.places.at(path).place).help(help));
    }

    fn tls(&mut self, path: &str, tls: Option<&NatsTls>) {
        for (option, file) in tls.into_iter().flat_map(files) {
            if let Err(why) = File::open(file) {
                let key = format!("{path}.tls.{option}");
                let shown = self.places.at(&key).show(&file.display().to_string());
                let help = "paths start at the directory of the configuration file";
                self.error(&key, format!("cannot read `{shown}`: {why}"), help);
            }
        }
    }
}

fn files(tls: &NatsTls) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let files = [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)];
    files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
}
