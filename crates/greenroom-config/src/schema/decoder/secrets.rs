//! Finds the stretches of a text that may be a secret, so that no excerpt shows them: the values of
//! secret options, and of keys that may be a secret option misspelt.

use super::told::nearest;
use crate::{
    problem::Problems,
    schema::{Group, Kind, Opt},
    tree::{Node, Value},
};

/// Hides possible secrets in a tree of these options.
pub(super) fn hide(root: &Node, group: &'static Group, problems: &mut Problems) {
    problems.understood();
    hide_in_group(root, group, problems);
}

fn hide_in_group(node: &Node, group: &'static Group, problems: &mut Problems) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                let known = group.find(&entry.key);
                match known.or_else(|| nearest(&entry.key, group).map(|(opt, _)| opt)) {
                    Some(opt) => hide_in_option(&entry.node, opt, problems),
                    None => hide_all(&entry.node, false, problems),
                }
            }
        }
        _ if group.has_secret() => {
            let is_url = group.short().is_some_and(|short| matches!(short.kind, Kind::Url));
            hide_all(node, is_url, problems);
        }
        _ => {}
    }
}

fn hide_in_option(node: &Node, opt: &Opt, problems: &mut Problems) {
    match (opt.kind, &node.value) {
        _ if opt.secret => hide_all(node, matches!(opt.kind, Kind::Url), problems),
        (Kind::Group(group) | Kind::CountOr { group, .. }, _) => {
            hide_in_group(node, group, problems);
        }
        (Kind::Named(group) | Kind::Each(group), Value::Map(entries)) => {
            entries.iter().for_each(|entry| hide_in_group(&entry.node, group, problems));
        }
        (Kind::List(group), Value::List(items)) => {
            items.iter().for_each(|item| hide_in_group(item, group, problems));
        }
        _ => {}
    }
}

fn hide_all(node: &Node, is_url: bool, problems: &mut Problems) {
    match &node.value {
        Value::Map(entries) => {
            entries.iter().for_each(|entry| hide_all(&entry.node, is_url, problems));
        }
        Value::List(items) => items.iter().for_each(|item| hide_all(item, is_url, problems)),
        Value::Null => {}
        _ => problems.hide(node, is_url),
    }
}
