//! Reads the text of a default.

use super::Opt;
use crate::{
    problem::Problems,
    tree::{Node, Place, Value, plain_scalar},
};

/// The default of an option as a tree, if it has one of its own: for a schema or another view of
/// the declaration.
pub fn default_of(opt: &Opt) -> Option<Node> {
    value_of(opt.default()?, &mut Problems::default())
}

/// The value of a default's text. Lists and quotes need the feature `text`.
pub(super) fn value_of(text: &str, problems: &mut Problems) -> Option<Node> {
    let node = |value| Some(Node::new(value, Place::whole_file()));
    match text {
        "{}" => node(Value::Map(Vec::new())),
        text if !text.contains(['[', '{', '"', '\'']) => node(plain_scalar(text)),
        #[cfg(feature = "text")]
        text => crate::yaml::parse(text, problems),
        #[cfg(not(feature = "text"))]
        text => {
            let why = format!("`{text}` is read with the feature `text` only");
            problems.push(crate::problem::Problem::error(why, Place::whole_file()));
            None
        }
    }
}
