//! Kinds that this build lacks: their blocks are read, and refused with the line that installs them
//! (C02).

use greenroom_config::{Places, Problem, Problems};

/// The optional kinds: the cargo feature of each, and whether this build has it.
const OPTIONAL: [(&str, bool); 5] = [
    ("kafka", cfg!(feature = "kafka")),
    ("nats", cfg!(feature = "nats")),
    ("otlp", cfg!(feature = "otlp")),
    ("redis", cfg!(feature = "redis")),
    ("json-schema", cfg!(feature = "json-schema")),
];

/// Reports each input, output, place of dead letters and telemetry of a kind that this build lacks,
/// even if it has other problems.
pub(super) fn check(places: &Places, problems: &mut Problems) {
    for (kind, _) in OPTIONAL.iter().filter(|(_, is_built)| !is_built) {
        let of = |section: &'static str| {
            let names = places.names_in(section);
            names.map(move |name| format!("{section}.{name}.{kind}"))
        };
        let single = [format!("dead_letters.{kind}"), format!("telemetry.{kind}")];
        for path in of("inputs").chain(of("outputs")).chain(single) {
            if places.has(&path) {
                let problem = Problem::error(built_without(kind), places.at(&path).place);
                problems.push(problem.help(get(kind)));
            }
        }
    }
}

/// A message about this feature and how to get it, if this build lacks it.
pub(crate) fn lacking(feature: &str) -> Option<String> {
    let lacks = OPTIONAL.contains(&(feature, false));
    lacks.then(|| format!("{}; {}", built_without(feature), get(feature)))
}

/// Says that this build lacks this feature.
pub(super) fn built_without(feature: &str) -> String {
    format!("this greenroom was built without `{feature}`")
}

/// How to get it.
pub(super) fn get(feature: &str) -> String {
    format!("install one that has it: {}", install(feature))
}

/// A greenroom like this one that also has this feature.
fn install(feature: &str) -> String {
    let all = OPTIONAL.iter().filter(|(name, is_built)| *is_built || *name == feature);
    let all: Vec<_> = all.map(|(name, _)| *name).collect();
    format!("cargo install greenroom-cli --features {}", all.join(","))
}
