//! What the library says of the options of `nats` inputs, before any server is asked.

use std::{fs::File, path::PathBuf};

use greenroom_config::{Places, Problem, Problems};

use super::options::{Config, InputKind, NatsTls};

/// Reports files that cannot be read, and keys that are none.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut error = |path: &str, message: String, help: &str| {
        problems.push(Problem::error(message, places.at(path).place).help(help));
    };
    for input in &config.inputs {
        let InputKind::Nats(nats) = &input.kind else { continue };
        let path = format!("inputs.{}.nats", input.name);
        for (option, file) in nats.tls.iter().flat_map(files) {
            if let Err(why) = File::open(file) {
                let key = format!("{path}.tls.{option}");
                let shown = places.at(&key).show(&file.display().to_string());
                let help = "paths start at the directory of the configuration file";
                error(&key, format!("cannot read `{shown}`: {why}"), help);
            }
        }
        if let Some(Err(why)) = nats.key.as_ref().map(|key| key.to_library()) {
            error(&format!("{path}.key"), why, "for example `key: { template: \"{2}.{3}\" }`");
        }
    }
}

fn files(tls: &NatsTls) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let files = [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)];
    files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
}
