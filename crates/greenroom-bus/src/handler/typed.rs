//! Handlers of a type: the data is decoded before they are asked.

use std::{fmt, future::Future, sync::Arc};

use super::{Attempt, Effect, Failure, Handler, HandlerFactory, HandlerResult, Handling};
use crate::event::{Event, codec::Decoders};

/// Handles events by a closure, which is given their data as a `T` and the event itself.
///
/// Data that cannot be read as that type rejects the event: it becomes a dead letter with its
/// original bytes. The closure is shared by all workers; its results are written by
/// [`EventBuilder::data_as`](crate::event::EventBuilder::data_as).
///
/// ```
/// use std::sync::Arc;
/// use greenroom_bus::{
///     codec::{Decoders, Encoders},
///     engine::HandlerConfig,
///     event::Event,
///     handler::{Outputs, typed::TypedFactory},
/// };
///
/// #[derive(serde::Deserialize)]
/// struct Order { items: Vec<u64> }
///
/// let encoders = Encoders::json();
/// let count = TypedFactory::new(Decoders::json(), move |order: Order, event| {
///     let encoders = encoders.clone();
///     async move {
///         let id = format!("{}-count", event.id());
///         let counted = Event::builder(id, "/counter", "order.counted")
///             .data_as("application/json", &order.items.len(), &encoders)
///             .build()?;
///         Ok(Outputs::Events(vec![counted]))
///     }
/// });
/// let handler = HandlerConfig::new(vec!["order.placed".parse()?], Arc::new(count));
/// # drop(handler);
/// # Ok::<(), greenroom_bus::pattern::PatternError>(())
/// ```
pub struct TypedFactory<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    decoders: Decoders<T>,
    run: Box<RunTyped<T>>,
}

type RunTyped<T> = dyn Fn(T, Event) -> Handling<'static> + Send + Sync;

impl<T: 'static> TypedFactory<T> {
    /// Handlers that decode by these and then call `run`.
    pub fn new<F>(
        decoders: Decoders<T>,
        run: impl Fn(T, Event) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let run = Box::new(move |data, event| Handling::Later(Box::pin(run(data, event))));
        Self { shared: Arc::new(Shared { decoders, run }) }
    }
}

impl<T: 'static> HandlerFactory for TypedFactory<T> {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Typed(self.shared.clone())))
    }
}

impl<T> fmt::Debug for TypedFactory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedFactory")
            .field("decoders", &self.shared.decoders)
            .finish_non_exhaustive()
    }
}

struct Typed<T>(Arc<Shared<T>>);

impl<T: 'static> Handler for Typed<T> {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        match self.0.decoders.decode(event) {
            Ok(data) => (self.0.run)(data, event.clone()),
            // The closure was not asked.
            Err(error) => Handling::Done(Err(Failure::from(error).with_effect(Effect::None))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{FailureKind, Outputs, samples};

    fn sums() -> Box<dyn Handler> {
        let sum = |numbers: Vec<u64>, event: Event| async move {
            let sum: u64 = numbers.iter().sum();
            let made = Event::builder("sum", event.id().to_owned(), "summed").data_json(&sum);
            Ok(Outputs::Events(vec![made.build()?]))
        };
        TypedFactory::new(Decoders::json(), sum).build(0).unwrap()
    }

    #[tokio::test]
    async fn g02_a_typed_handler_is_given_its_type_and_the_event() {
        let (event, attempt) = (samples::event("a", "[1,2,3]"), samples::attempt());
        let outputs = samples::settle(sums().handle(&event, &attempt)).await.unwrap();
        let Outputs::Events(made) = outputs else { panic!("{outputs:?}") };
        assert_eq!((made[0].source(), made[0].data_as::<u64>().unwrap()), ("a", 6));
    }

    #[tokio::test]
    async fn m02_what_is_of_another_shape_rejects_the_event() {
        let (event, attempt) = (samples::event("a", "{\"n\":1}"), samples::attempt());
        let failure = samples::settle(sums().handle(&event, &attempt)).await.unwrap_err();
        assert_eq!((failure.kind, failure.effect), (FailureKind::Reject, Effect::None));
        assert!(failure.error.contains("expected a sequence"), "{failure}");
    }
}
