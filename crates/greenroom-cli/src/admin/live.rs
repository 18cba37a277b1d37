//! The live stream: all figures once a second, for pages that stay open (O07).
//!
//! ```text
//! engine ──views──▶ sampler ──watch (the latest sample alone)──▶ stream of each tab
//!                      └─ runs while a client listens
//! ```
//!
//! One sampler serves all tabs, so a second tab costs only its connection. A slow tab misses
//! samples, and delays no other. Without listeners, nothing is sampled, and no pool events are
//! collected. If sampling itself takes long (for ten thousand parked keys, say), it runs less
//! often, but at least every five seconds.

use std::{
    io,
    net::IpAddr,
    sync::Arc,
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
    audit::Peer,
    guard::Role,
    sample::Sampler,
};

/// The time between two samples.
const PERIOD: Duration = Duration::from_secs(1);

/// Sampling takes this fraction of the time, except for samples that take a quarter of a second.
const SHARE: u32 = 20;

/// Pages take a longer silence for the end.
const LONGEST: Duration = Duration::from_secs(5);

/// The most listeners at once. A browser that is left open listens with one connection per tab.
const LISTENERS: usize = 16;

/// The most listeners with the read token: it never takes the last places from an operator.
const READERS: usize = 12;

/// The most listeners from one address with the same token. Behind a proxy, all users have one
/// address, so this is more than one person needs.
const OF_ADDRESS: usize = 8;

/// The listeners.
#[derive(Clone, Default)]
pub(super) struct Live(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Present while a sampler runs.
    samples: Mutex<Option<watch::Sender<Bytes>>>,
    listeners: Mutex<Vec<(IpAddr, Role)>>,
    /// The number of samplers so far, for tests.
    #[cfg(test)]
    samplers: std::sync::atomic::AtomicUsize,
}

/// Counts as a listener until it is dropped.
struct Listening(Arc<Shared>, (IpAddr, Role));

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listeners = self.0.listeners.lock();
        if let Some(place) = listeners.iter().position(|listener| *listener == self.1) {
            listeners.swap_remove(place);
        }
    }
}

impl Live {
    /// Adds a listener, or says how many there are already. Without a token, all are programs on
    /// this machine, so their address tells nothing.
    fn enter(&self, from: IpAddr, role: Role) -> Result<Listening, String> {
        let listener = (from, role);
        let mut listeners = self.0.listeners.lock();
        let readers = listeners.iter().filter(|(_, role)| *role == Role::Reader).count();
        let alike = listeners.iter().filter(|other| **other == listener).count();
        let full = match role {
            _ if listeners.len() >= LISTENERS => format!("{LISTENERS} pages are listening"),
            Role::Reader if readers >= READERS => {
                format!("{READERS} pages are listening with the read token")
            }
            Role::Reader | Role::Admin if alike >= OF_ADDRESS => {
                format!("{OF_ADDRESS} pages from {from} are listening with the {}", role.name())
            }
            _ => {
                listeners.push(listener);
                return Ok(Listening(self.0.clone(), listener));
            }
        };
        Err(format!("{full}, which is the limit"))
    }

    /// The samples from now on; starts the sampler if there was no listener.
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
        self.0.samplers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        tokio::spawn(sample(self.0.clone(), sampler()));
        receiver
    }
}

/// Samples until no listener is left.
async fn sample(shared: Arc<Shared>, mut sampler: impl FnMut() -> String) {
    loop {
        let started = Instant::now();
        let sample = Bytes::from(format!("data: {}\n\n", sampler()));
        {
            // Under the lock, so that no listener joins a sampler that ends.
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

/// The name of this machine.
fn instance() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Sends samples until the client disconnects.
pub(super) async fn live(
    State(daemon): State<Arc<Daemon>>,
    Extension(live): Extension<Live>,
    Extension(role): Extension<Role>,
    Extension(Peer(peer)): Extension<Peer>,
) -> Result<Response, Refusal> {
    let listening = live.enter(peer.ip().to_canonical(), role).map_err(|what| {
        let next = "close an unused page";
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
