//! The live stream: all of the figures once a second, for pages that stay open (O07).
//!
//! ```text
//! engine ──views──▶ sampler ──watch (the latest sample alone)──▶ stream of each tab
//!                      └─ runs while a client listens
//! ```
//!
//! One sampler serves all tabs, so a second tab costs its connection and no more. A tab that does
//! not keep up misses samples, and holds up nobody. Nothing is sampled, and no event of a pool is
//! collected, while nobody listens. Where sampling itself takes long (ten thousand parked keys,
//! say), it is done less often, every five seconds at the least.

use std::{
    io,
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::{Duration, Instant},
};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::watch, time::sleep};

use super::{
    Daemon,
    answer::{Refusal, as_json},
    guard::Role,
    sample::Sampler,
};

/// Between two samples.
const PERIOD: Duration = Duration::from_secs(1);

/// Sampling takes one part in so many of the time, but for samples that take a quarter of a second.
const SHARE: u32 = 20;

/// Pages take longer silence for the end.
const LONGEST: Duration = Duration::from_secs(5);

/// So many listen at once. A browser that is left open listens with one connection a tab.
const LISTENERS: usize = 16;

/// Who listens.
#[derive(Clone, Default)]
pub(super) struct Live(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Present while a sampler runs.
    samples: Mutex<Option<watch::Sender<Bytes>>>,
    listeners: AtomicUsize,
    /// How many samplers there have been, for tests.
    #[cfg(test)]
    samplers: AtomicUsize,
}

/// Counts as a listener until it is dropped.
struct Listening(Arc<Shared>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Live {
    /// `None` where as many listen as may.
    fn enter(&self) -> Option<Listening> {
        let enter = |listeners| (listeners < LISTENERS).then_some(listeners + 1);
        let (listeners, order) = (&self.0.listeners, Ordering::Relaxed);
        listeners.fetch_update(order, order, enter).ok()?;
        Some(Listening(self.0.clone()))
    }

    /// The samples from now on; begins to sample where nobody has listened.
    fn listen<S>(&self, sampler: impl FnOnce() -> S) -> watch::Receiver<Bytes>
    where
        S: FnMut() -> String + Send + 'static,
    {
        let mut samples = self.0.samples.lock();
        if let Some(samples) = &*samples {
            return samples.subscribe();
        }
        let (sender, receiver) = watch::channel(Bytes::new());
        *samples = Some(sender);
        #[cfg(test)]
        self.0.samplers.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(sample(self.0.clone(), sampler()));
        receiver
    }
}

/// Samples until nobody listens any more.
async fn sample(shared: Arc<Shared>, mut sampler: impl FnMut() -> String) {
    loop {
        let started = Instant::now();
        let sample = Bytes::from(format!("data: {}\n\n", sampler()));
        {
            // Under the lock, so that nobody begins to listen to a sampler that ends.
            let mut samples = shared.samples.lock();
            let sent = samples.as_ref().is_some_and(|samples| samples.send(sample).is_ok());
            if !sent {
                *samples = None;
                return;
            }
        }
        sleep((started.elapsed() * SHARE).clamp(PERIOD, LONGEST)).await;
    }
}

/// What this machine is called.
#[cfg(unix)]
fn instance() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn instance() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Sends samples until the client goes.
pub(super) async fn live(
    State(daemon): State<Arc<Daemon>>,
    Extension(live): Extension<Live>,
    Extension(role): Extension<Role>,
) -> Result<Response, Refusal> {
    let listening = live.enter().ok_or_else(|| {
        let what = format!("{LISTENERS} pages listen already");
        let next = "close one that nobody looks at";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, what, "/api/live", next)
    })?;
    let mut samples = live.listen(|| {
        let mut sampler = Sampler::new(daemon);
        move || sampler.sample().to_string()
    });
    // If another client listens already, the latest sample comes at once.
    samples.mark_changed();
    let version = env!("CARGO_PKG_VERSION");
    let hello = json!({
        "role": role.name(),
        "may_change": role.may_change(),
        "version": version,
        "instance": instance(),
    });
    let hello = Bytes::from(format!("retry: 2000\nevent: hello\ndata: {hello}\n\n"));
    let lines = stream::unfold((Some(hello), samples, listening), |state| async {
        let (hello, mut samples, listening) = state;
        if let Some(hello) = hello {
            return Some((Ok::<_, io::Error>(hello), (None, samples, listening)));
        }
        loop {
            samples.changed().await.ok()?;
            let sample = samples.borrow_and_update().clone();
            if !sample.is_empty() {
                return Some((Ok(sample), (None, samples, listening)));
            }
        }
    });
    let mut response = as_json(Body::from_stream(lines));
    let events = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, events);
    Ok(response)
}

#[cfg(test)]
mod tests;
