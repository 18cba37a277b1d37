//! Decodes a tree into the type that its options are declared as.

use std::path::Path;

use crate::{
    at::At,
    options::Options,
    places::Places,
    problem::Problems,
    schema::decoder::record,
    tree::{Entry, Node, Place, Value, plain_scalar},
};

/// Decodes a tree as the options of a type and reports every problem in it. Also returns the places
/// of all values, for checks across several values. Relative paths start at `directory`.
///
/// A wrong value is replaced by its default, or left out if it has none, so that the rest can still
/// be checked.
pub fn decode<T: Options>(
    root: &Node,
    directory: &Path,
    problems: &mut Problems,
) -> (Option<T>, Places) {
    let (record, places) = record(root, T::GROUP, problems);
    let config = T::build(record, &mut At::new("", &places, directory, problems));
    (config, places)
}

/// The options if nothing is written. `None`: some option is required. `path` is the name or path
/// of the result.
pub fn defaults<T: Options>(path: &str) -> Option<T> {
    let mut problems = Problems::default();
    let (record, places) = record(&Node::blank(), T::GROUP, &mut problems);
    let mut at = At::new(path, &places, Path::new(""), &mut problems);
    T::build(record, &mut at).filter(|_| problems.errors() == 0)
}

/// The declared defaults beside these values, each as in YAML: for a constructor, so that no
/// default stands twice.
///
/// # Panics
/// A required option is missing, or a value is refused.
pub fn defaults_beside<T: Options>(values: &[(&str, &str)]) -> T {
    let entry = |(key, value): &(&str, &str)| Entry {
        key: (*key).to_owned(),
        place: Place::whole_file(),
        node: Node::new(plain_scalar(value), Place::whole_file()),
    };
    let root = Node::new(Value::Map(values.iter().map(entry).collect()), Place::whole_file());
    let mut problems = Problems::default();
    let (built, _) = decode(&root, Path::new(""), &mut problems);
    let told: Vec<_> = problems.sorted().iter().map(|problem| problem.message.clone()).collect();
    match built {
        Some(built) if problems.errors() == 0 => built,
        _ => panic!("values for {}: {}", T::GROUP.title, told.join("; ")),
    }
}
