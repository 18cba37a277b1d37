//! `--set a.b=c`: single values from the command line, put into the tree before it is decoded.

use std::sync::Arc;

use crate::{
    problem::{Problem, Problems},
    tree::{Entry, Node, Place, Value},
    yaml,
};

/// No option is nested deeper than this. The tree is walked by recursion, and a longer path would
/// overflow the stack.
const MAX_DEPTH: usize = 32;

/// Puts `path=value` into the tree; the value is read as YAML.
pub fn apply(root: &mut Node, setting: &str, problems: &mut Problems) {
    match parsed(setting) {
        Ok((keys, node)) => put(root, &keys, node, problems),
        Err(problem) => problems.push(problem),
    }
}

fn parsed(setting: &str) -> Result<(Vec<&str>, Node), Problem> {
    let (path, text) = setting.split_once('=').unwrap_or((setting, ""));
    let place = Place::Set(Arc::from(path));
    let keys: Vec<_> = path.split('.').collect();
    if keys.len() > MAX_DEPTH {
        let problem = Problem::error(format!("the path has {} parts", keys.len()), place);
        return Err(problem.help("no option is nested that deep"));
    }
    if !setting.contains('=') || keys.iter().any(|key| key.is_empty()) {
        return Err(Problem::error("a setting is written `a.b=value`", place)
            .help("for example `--set pools.default.workers=8`"));
    }
    let mut inner = Problems::new(path, text);
    // YAML reads a lone `-`, which means standard input or output, as a list with an empty item.
    let node = if matches!(text, "" | "-") {
        Some(Node::new(Value::Text(text.to_owned()), place.clone()))
    } else {
        yaml::parse(text, &mut inner)
    };
    match node {
        Some(node) if inner.errors() == 0 && !node.is_blank() => Ok((keys, moved(node, &place))),
        _ => Err(Problem::error("the value of this setting is not valid YAML", place).help(
            "quote it for the shell and for YAML, for example `--set 'handlers.a.on=\"**\"'`",
        )),
    }
}

fn put(node: &mut Node, keys: &[&str], value: Node, problems: &mut Problems) {
    let Some((key, rest)) = keys.split_first() else {
        *node = value;
        return;
    };
    if node.value == Value::Null {
        node.value = Value::Map(Vec::new());
    }
    let Value::Map(entries) = &mut node.value else {
        problems.push(
            Problem::error(
                format!("`{key}` cannot be set inside {}", node.describe()),
                value.place,
            )
            .help("set the whole value"),
        );
        return;
    };
    if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *key) {
        return put(&mut entry.node, rest, value, problems);
    }
    let place = value.place.clone();
    let mut entry =
        Entry { key: (*key).to_owned(), place: place.clone(), node: Node::new(Value::Null, place) };
    put(&mut entry.node, rest, value, problems);
    entries.push(entry);
}

/// Every place within a setting is the setting itself.
fn moved(mut node: Node, place: &Place) -> Node {
    node.place = place.clone();
    node.value = match node.value {
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| moved(item, place)).collect())
        }
        Value::Map(entries) => {
            let entry = |e: Entry| Entry { place: place.clone(), node: moved(e.node, place), ..e };
            Value::Map(entries.into_iter().map(entry).collect())
        }
        other => other,
    };
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_end_is_refused_and_not_walked() {
        let mut problems = Problems::new("greenroom.yaml", "");
        let mut root = Node::blank();
        apply(&mut root, &format!("a{}=1", ".a".repeat(100_000)), &mut problems);
        assert_eq!((problems.errors(), root.is_blank()), (1, true));
        assert!(problems.render(false).contains("100001 parts"));
    }
}
