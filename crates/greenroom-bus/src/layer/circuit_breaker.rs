//! A circuit breaker between a handler and the system that it calls.

use std::{sync::Arc, time::Duration};

use greenroom::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Layer;

use super::{Around, Request, Surrounded, passage::Passage};
use crate::{
    handler::{Failure, FailureKind, HandlerResult, shows_that_it_works},
    outage::Outage,
};

/// Stops attempts while the system that they call is down.
///
/// ```text
///            so many failures in a row            the time is over: one attempt probes
///  closed ─────────────────────────────▶ open ──────────────────────────────────────▶ half open
///    ▲                                    ▲                                            │    │
///    │                                    └──────────────── it failed ─────────────────┘    │
///    └────────────────────────────────────────────────────── it succeeded ──────────────────┘
/// ```
///
/// While it is open, and during a probe, events are given back unstarted: no attempt is counted,
/// their keys wait and their workers do not. A failure is an attempt that is to be retried, that
/// timed out, crashed or was dropped on its way; an event that the handler rejects or parks shows
/// that the system answers. An answer that an inner layer gives in place of the handler (a
/// duplicate, data that does not match its schema) says nothing.
///
/// Clones share their state: put around several handlers that call the same system, one breaker
/// represents that system. That is its purpose; for a single handler, the engine detects an outage
/// by itself ([`OutageConfig`](crate::engine::OutageConfig)).
#[derive(Debug, Clone)]
pub struct CircuitBreaker {
    circuit: Arc<HandlerCircuit>,
}

#[derive(Debug)]
struct HandlerCircuit {
    failures: u32,
    open_for: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Failures in a row.
    failed: u32,
    /// While it is open or half open.
    outage: Option<Outage>,
    /// Counts every change, so that an attempt that began before the last change has no effect on
    /// the present state.
    era: u64,
    /// How often it opened.
    opened: u64,
}

/// Whether a [`CircuitBreaker`] lets attempts through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    /// All of them.
    Closed,
    /// None, or one as soon as the time is over.
    Open,
    /// One is on its way, and decides.
    HalfOpen,
}

impl CircuitBreaker {
    /// Opens after this many consecutive failures, at least 1, for this time. 5 and 10 s are a
    /// starting point: more failures than a healthy system ever has in a row, and as long as it
    /// takes to recover.
    pub fn new(failures: u32, open_for: Duration) -> Self {
        let (failures, state) = (failures.max(1), Mutex::default());
        Self { circuit: Arc::new(HandlerCircuit { failures, open_for, state }) }
    }

    /// Its present state.
    pub fn state(&self) -> CircuitState {
        match &self.circuit.state.lock().outage {
            None => CircuitState::Closed,
            Some(outage) if outage.is_probed() => CircuitState::HalfOpen,
            Some(_) => CircuitState::Open,
        }
    }

    /// How often it has opened; a probe that fails opens it again.
    pub fn opened(&self) -> u64 {
        self.circuit.state.lock().opened
    }
}

impl<S> Layer<S> for CircuitBreaker {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

/// The right to make an attempt. Dropped without a result, it has failed.
#[derive(Debug)]
pub struct CircuitPass {
    circuit: Arc<HandlerCircuit>,
    era: u64,
    /// Whether the handler itself has answered.
    passage: Arc<Passage>,
    said: bool,
}

impl Around for CircuitBreaker {
    type Pass = CircuitPass;

    fn before(&self, request: &mut Request) -> Result<CircuitPass, HandlerResult> {
        let era = self.circuit.enter().map_err(|why| {
            Err(Failure::new(FailureKind::Released, format!("the circuit breaker is open: {why}")))
        })?;
        let (circuit, passage) = (self.circuit.clone(), request.passage.clone());
        Ok(CircuitPass { circuit, era, passage, said: false })
    }

    fn after(mut pass: CircuitPass, result: &mut HandlerResult) {
        pass.said = true;
        let kind = result.as_ref().err().map(|failure| failure.kind);
        let is_released = kind == Some(FailureKind::Released);
        if !is_released && kind.is_some_and(|kind| !kind.blames_the_event()) {
            pass.circuit.failed(pass.era);
        } else if shows_that_it_works(result) && pass.passage.is_answered() {
            pass.circuit.succeeded(pass.era);
        } else {
            pass.circuit.not_made(pass.era);
        }
    }
}

impl Drop for CircuitPass {
    fn drop(&mut self) {
        if !self.said {
            self.circuit.failed(self.era);
        }
    }
}

impl HandlerCircuit {
    /// The era of an attempt that may be made.
    fn enter(&self) -> Result<u64, &'static str> {
        let mut state = self.state.lock();
        if let Some(outage) = &mut state.outage {
            if outage.is_probed() {
                return Err("another event probes");
            }
            if !outage.try_probe(Instant::now()) {
                return Err("too many attempts have failed");
            }
            state.era += 1;
        }
        Ok(state.era)
    }

    fn succeeded(&self, era: u64) {
        let mut state = self.state.lock();
        if state.era != era {
            return;
        }
        state.failed = 0;
        if state.outage.take().is_some() {
            state.era += 1;
            drop(state);
            tracing::info!("a circuit breaker has closed: the probe succeeded");
        }
    }

    fn failed(&self, era: u64) {
        let mut state = self.state.lock();
        if state.era != era {
            return;
        }
        state.failed += 1;
        if state.outage.is_some() || state.failed >= self.failures {
            let waits = Backoff::new(self.open_for, self.open_for);
            state.outage.iter_mut().for_each(Outage::ends_probe);
            Outage::fails(&mut state.outage, "", &waits, 1.0, Instant::now());
            (state.failed, state.era, state.opened) = (0, era + 1, state.opened + 1);
            drop(state);
            tracing::warn!(open_for = ?self.open_for, "a circuit breaker has opened: attempts wait");
        }
    }

    /// The attempt did not reach the system, and says nothing about it. Another one may probe in
    /// its place.
    fn not_made(&self, era: u64) {
        let mut state = self.state.lock();
        if state.era == era
            && let Some(outage) = &mut state.outage
        {
            outage.ends_probe();
        }
    }
}
