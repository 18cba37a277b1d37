//! What builds actors.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use greenroom_queue::{
    discard::discard,
    lock::{Mutex, user_code_follows},
};

use crate::{Actor, Layer, layer::Layered, pool::panic_message::panic_message};

/// Builds the actor of a slot. Called once per start, on the runtime's blocking
/// pool unless it is quick.
pub(crate) struct Factory<A> {
    build: Build<A>,
    /// It does not block, and may be called on the worker's own task.
    quick: bool,
}

type Build<A> = Arc<dyn Fn(usize) -> Result<A, String> + Send + Sync>;

/// An actor on its way from the thread that has built it. One that nobody fetches is discarded.
struct Made<A>(Mutex<Option<Result<A, String>>>);

impl<A> Drop for Made<A> {
    fn drop(&mut self) {
        discard(self.0.get_mut().take());
    }
}

impl<A> Clone for Factory<A> {
    fn clone(&self) -> Self {
        Self { build: self.build.clone(), quick: self.quick }
    }
}

impl<A: Send + 'static> Factory<A> {
    pub(crate) fn new(build: Build<A>) -> Self {
        Self { build, quick: false }
    }

    /// Builds the same actors, each in a layer.
    pub(crate) fn layered<L: Layer<A>>(
        &self,
        layer: impl Fn(usize) -> L + Send + Sync + 'static,
    ) -> Factory<Layered<A, L>>
    where
        A: Actor,
    {
        let build = self.build.clone();
        let build = move |slot| Ok(Layered::new(build(slot)?, layer(slot)));
        Factory { build: Arc::new(build), quick: self.quick }
    }

    pub(crate) fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    pub(super) async fn build(&self, worker: usize) -> Result<A, String> {
        let build = self.build.clone();
        user_code_follows();
        let built = match self.quick {
            true => catch_unwind(AssertUnwindSafe(|| build(worker))),
            false => {
                let made = Arc::new(Made(Mutex::new(None)));
                let place = made.clone();
                // In a box, or the runtime's part of it would be compiled for each type of actor.
                let work: Box<dyn FnOnce() + Send> = Box::new(move || {
                    let built = build(worker);
                    *place.0.lock() = Some(built);
                });
                match tokio::task::spawn_blocking(work).await {
                    Ok(()) => {
                        let built = made.0.lock().take();
                        Ok(built.unwrap_or_else(|| Err("it made none".to_owned())))
                    }
                    Err(error) => Err(error.try_into_panic().map_err(|error| error.to_string())?),
                }
            }
        };
        built.unwrap_or_else(|panic| {
            let reason = format!("the factory panicked: {}", panic_message(&*panic));
            discard(panic);
            Err(reason)
        })
    }
}
