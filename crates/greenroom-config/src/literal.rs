//! Values to compare with.

use crate::tree::{Node, Value, plain_scalar};

/// A text, a number or a truth value, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A text: a quoted value, or one that is nothing else.
    Text(String),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Number(f64),
    /// `true` or `false`.
    Bool(bool),
}

impl Literal {
    /// The literal that a value is written as. One from a reference is read as if it were unquoted.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        match &node.value {
            Value::Text(text) if node.origin.is_some() => match plain_scalar(text) {
                // The value exists, so it is a text.
                Value::Null => Some(Self::Text(text.clone())),
                value => Self::written(&value),
            },
            value => Self::written(value),
        }
    }

    fn written(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(Self::Text(text.clone())),
            Value::Int(number) => Some(Self::Whole(*number)),
            Value::Float(number) => Some(Self::Number(*number)),
            Value::Bool(truth) => Some(Self::Bool(*truth)),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }
}
