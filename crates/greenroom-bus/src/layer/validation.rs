//! Data that is checked before a handler sees it.

mod unambiguous;

use std::{fmt::Write, sync::Arc};

use jsonschema::Validator;
use serde_json::Value;
use tower::Layer;

use self::unambiguous::Unambiguous;
use super::{Around, Request, Surrounded};
use crate::{
    event::Event,
    handler::{Failure, HandlerResult},
    pattern::Pattern,
};

/// Problems that one error names; a large document often has the same problem many times.
const SHOWN: usize = 10;

/// Rejects events whose data does not fit the JSON Schema of their type: a dead letter that names
/// the problems and where in the data they are. Events of types without a schema pass.
///
/// Data with a duplicate member is rejected as well: the next reader may use the other value than
/// the schema check did.
///
/// Schemas are those of drafts 4 to 2020-12, told apart by `$schema`. A `$ref` stays within its
/// document: nothing is read from files or the network.
///
/// ```
/// use greenroom_bus::layer::{Layers, Validation};
///
/// let order = serde_json::json!({
///     "type": "object",
///     "required": ["items"],
///     "properties": { "items": { "type": "array" } },
/// });
/// let layers = Layers::new().layer(Validation::new().schema("order.*".parse()?, &order)?);
/// # drop(layers);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Validation {
    schemas: Arc<Vec<(Pattern, Validator)>>,
}

/// A JSON Schema that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema for {on} is no valid JSON Schema: {reason}")]
#[non_exhaustive]
pub struct SchemaError {
    /// The types that it was for.
    pub on: String,
    /// The problem with it.
    pub reason: String,
}

impl Validation {
    /// Without schemas, everything passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Data of these types has to match this schema; data of a type with several schemas has to
    /// match each of them.
    ///
    /// # Errors
    /// The schema is no valid one, or refers to another document.
    pub fn schema(mut self, on: Pattern, schema: &Value) -> Result<Self, SchemaError> {
        match jsonschema::validator_for(schema) {
            Ok(validator) => Arc::make_mut(&mut self.schemas).push((on, validator)),
            Err(error) => {
                return Err(SchemaError { on: on.to_string(), reason: error.to_string() });
            }
        }
        Ok(self)
    }

    fn check(&self, event: &Event) -> Result<(), Failure> {
        let mut schemas =
            self.schemas.iter().filter(|(on, _)| on.matches(event.ty())).map(|(_, schema)| schema);
        let Some(first) = schemas.next() else { return Ok(()) };
        let Unambiguous(data) = event.data_as()?;
        for schema in std::iter::once(first).chain(schemas) {
            if !schema.is_valid(&data) {
                return Err(Failure::reject(problems(schema, &data)));
            }
        }
        Ok(())
    }
}

fn problems(schema: &Validator, data: &Value) -> String {
    let mut words = String::from("the data does not fit its schema");
    let mut errors = schema.iter_errors(data);
    for (at, error) in errors.by_ref().take(SHOWN).enumerate() {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the whole" } else { &place };
        let mark = if at == 0 { ": " } else { "; " };
        // Writing to a string cannot fail.
        let _ = write!(words, "{mark}{place}: {}", error.masked());
    }
    match errors.count() {
        0 => {}
        more => {
            let _ = write!(words, "; and {more} more");
        }
    }
    words
}

impl<S> Layer<S> for Validation {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

impl Around for Validation {
    type Pass = ();

    fn before(&self, request: &mut Request) -> Result<(), HandlerResult> {
        self.check(&request.event).map_err(Err)
    }
}
