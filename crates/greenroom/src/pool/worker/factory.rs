//! Building actors.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use greenroom_queue::{
    discard::discard,
    lock::{Mutex, user_code_follows},
};

use crate::{
    Actor, Layer, address::vtable::BoxFuture, layer::Layered, pool::panic_message::panic_message,
};

/// Builds the actor of a slot. Called once per start, on the runtime's blocking pool unless it is
/// quick.
pub(crate) struct Factory<A> {
    build: Build<A>,
    /// It does not block, and may be called on the worker's own task.
    quick: bool,
}

type Build<A> = Arc<dyn Fn(usize) -> Result<A, String> + Send + Sync>;

/// An actor of any type.
pub(super) type AnyActor = Box<dyn Any + Send>;

/// An actor on its way from the thread that has built it. If it is not fetched, it is discarded.
struct Made(Mutex<Option<Result<AnyActor, String>>>);

impl Drop for Made {
    fn drop(&mut self) {
        discard(self.0.get_mut().take());
    }
}

impl_clone!([A] Factory<A>: build, quick);

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

    pub(super) fn build(&self, worker: usize) -> BoxFuture<'static, Result<AnyActor, String>> {
        let build = self.build.clone();
        let build = move || Ok(Box::new(build(worker)?) as AnyActor);
        Box::pin(built(self.quick, Box::new(build)))
    }
}

/// Compiled only once, whatever it builds.
async fn built(
    quick: bool,
    build: Box<dyn FnOnce() -> Result<AnyActor, String> + Send>,
) -> Result<AnyActor, String> {
    user_code_follows();
    let built = match quick {
        true => catch_unwind(AssertUnwindSafe(build)),
        false => {
            let made = Arc::new(Made(Mutex::new(None)));
            let place = made.clone();
            let work = move || {
                let built = build();
                *place.0.lock() = Some(built);
            };
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
