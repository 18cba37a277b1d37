//! The layers of each handler, from their settings, and their figures while they run.

use std::{collections::HashMap, sync::Arc, time::Duration};

#[cfg(feature = "json-schema")]
use greenroom_bus::layer::Validation;
use greenroom_bus::{
    handler::HandlerFactory,
    layer::{
        CircuitBreaker, CircuitState, Correlation, Deduplication, Layers, Metrics, RateLimitLayer,
        TimeoutLayer, Traced,
    },
};
use serde_json::{Value, json};

use crate::config::{Breaker, HandlerConfig, Kinds, LayerConfig, Rate, Schema};

/// The time to store seen ids at the end of a run; if it runs out, the next run handles them again.
const STORED_WITHIN: Duration = Duration::from_secs(5);

/// The figures of the layers of each handler, by its name.
#[derive(Default)]
pub(crate) struct HandlerLayers {
    handlers: HashMap<String, Vec<Layer>>,
    /// The breakers that several handlers share.
    shared: HashMap<String, CircuitBreaker>,
}

/// A layer around a handler.
struct Layer {
    name: &'static str,
    tells: Tells,
}

enum Tells {
    Nothing,
    Circuit(CircuitBreaker),
    Skipped(Deduplication),
    Counts(Metrics),
}

impl HandlerLayers {
    /// Wraps a handler in its layers.
    ///
    /// # Errors
    /// An invalid schema; a checked configuration has none.
    pub(super) fn around(
        &mut self,
        handler: &HandlerConfig,
        factory: Arc<dyn HandlerFactory>,
    ) -> Result<Arc<dyn HandlerFactory>, String> {
        let (mut layers, mut told) = (Layers::new(), Vec::new());
        for config in &handler.layers {
            let tells;
            (layers, tells) = self.add(layers, config)?;
            told.push(Layer { name: config.key(), tells });
        }
        self.handlers.insert(handler.name.clone(), told);
        Ok(layers.around(factory))
    }

    fn add(&mut self, layers: Layers, config: &LayerConfig) -> Result<(Layers, Tells), String> {
        Ok(match config {
            LayerConfig::Timeout(limit) => {
                (layers.layer(TimeoutLayer::new(*limit)), Tells::Nothing)
            }
            LayerConfig::Rate(rate) => (layers.layer(rate_limit(*rate)), Tells::Nothing),
            LayerConfig::CircuitBreaker(config) => {
                let breaker = self.breaker(config);
                (layers.layer(breaker.clone()), Tells::Circuit(breaker))
            }
            LayerConfig::Deduplication(config) => {
                let seen = Deduplication::within(config.within).remember(config.remember);
                let seen = match &config.store {
                    Some(path) => seen.stored(path).map_err(|error| error.to_string())?,
                    None => seen,
                };
                (layers.layer(seen.clone()), Tells::Skipped(seen))
            }
            LayerConfig::Validation(schemas) => (validated(layers, schemas)?, Tells::Nothing),
            LayerConfig::Correlation => (layers.layer(Correlation), Tells::Nothing),
            LayerConfig::Tracing => (layers.layer(Traced), Tells::Nothing),
            LayerConfig::Metrics => {
                let metrics = Metrics::default();
                (layers.layer(metrics.clone()), Tells::Counts(metrics))
            }
        })
    }

    fn breaker(&mut self, config: &Breaker) -> CircuitBreaker {
        let new = || CircuitBreaker::new(config.failures, config.open_for);
        match &config.shared {
            Some(name) => self.shared.entry(name.clone()).or_insert_with(new).clone(),
            None => new(),
        }
    }

    /// The layers of a handler, the outermost first, with their figures. Times are in milliseconds.
    pub(crate) fn view(&self, handler: &str) -> Value {
        let layers = self.handlers.get(handler).into_iter().flatten();
        layers.map(Layer::view).collect()
    }

    /// How often a circuit breaker of this handler that is open now has opened.
    pub(crate) fn opened(&self, handler: &str) -> Option<u64> {
        let mut layers = self.handlers.get(handler).into_iter().flatten();
        layers.find_map(|layer| match &layer.tells {
            Tells::Circuit(breaker) if breaker.state() == CircuitState::Open => {
                Some(breaker.opened())
            }
            _ => None,
        })
    }

    /// The handlers with deduplication, each with the number of duplicates that were skipped.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&str, u64)> {
        self.handlers.iter().filter_map(|(handler, layers)| {
            let seen = layers.iter().filter_map(|layer| match &layer.tells {
                Tells::Skipped(seen) => Some(seen.skipped()),
                _ => None,
            });
            Some((handler.as_str(), seen.reduce(|a, b| a + b)?))
        })
    }

    /// Logs the counts, once the run has ended.
    pub(crate) fn conclude(&self) {
        for layer in self.handlers.values().flatten() {
            if let Tells::Skipped(seen) = &layer.tells {
                seen.flush(STORED_WITHIN);
            }
        }
        let told = self.handlers.iter().flat_map(|(handler, layers)| {
            layers
                .iter()
                .filter(|layer| !matches!(layer.tells, Tells::Nothing))
                .map(move |layer| (handler, layer))
        });
        for (handler, layer) in told {
            tracing::info!(handler, layer = layer.name, figures = %layer.view(), "a layer has ended");
        }
    }
}

impl Layer {
    fn view(&self) -> Value {
        let mut view = match &self.tells {
            Tells::Nothing => json!({}),
            Tells::Circuit(breaker) => json!({
                "state": match breaker.state() {
                    CircuitState::Closed => "closed",
                    CircuitState::Open => "open",
                    CircuitState::HalfOpen => "half open",
                },
                "opened": breaker.opened(),
            }),
            Tells::Skipped(seen) => {
                json!({ "skipped": seen.skipped(), "store_error": seen.store_error() })
            }
            Tells::Counts(metrics) => counts(metrics),
        };
        view["layer"] = self.name.into();
        view
    }
}

fn counts(metrics: &Metrics) -> Value {
    let seen = metrics.snapshot();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    json!({
        "begun": seen.begun,
        "in_hand": seen.in_hand,
        "handled": seen.handled,
        "failed": seen.failed,
        "timed_out": seen.timed_out,
        "rejected": seen.rejected,
        "crashed": seen.crashed,
        "released": seen.released,
        "cancelled": seen.cancelled,
        "took_ms": { "p50": ms(seen.took_p50), "p99": ms(seen.took_p99), "max": ms(seen.took_most) },
    })
}

/// Like a pool's rate: a tenth of a second's worth may pass at once, and at least one.
fn rate_limit(rate: Rate) -> RateLimitLayer {
    let at_once = (rate.per_second / 10.0).floor().max(1.0);
    RateLimitLayer::new(at_once as u64, Duration::from_secs_f64(at_once / rate.per_second))
}

#[cfg(feature = "json-schema")]
fn validated(layers: Layers, schemas: &[Schema]) -> Result<Layers, String> {
    let validation = schemas.iter().try_fold(Validation::new(), |validation, schema| {
        let on = schema.on.parse().map_err(|error| format!("validation: {error}"))?;
        validation.schema(on, &schema.document).map_err(|error| error.to_string())
    })?;
    Ok(layers.layer(validation))
}

/// No configuration of this build has schemas: reading one refuses them.
#[cfg(not(feature = "json-schema"))]
fn validated(layers: Layers, _: &[Schema]) -> Result<Layers, String> {
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use greenroom_bus::{
        event::Event,
        handler::{Attempt, Handling, pass::PassFactory},
    };

    use super::*;

    /// How long so many attempts take that go through a layer of this rate, on virtual time.
    async fn took(per_second: f64, attempts: u32) -> Duration {
        let layers = Layers::new().layer(rate_limit(Rate { per_second }));
        let mut handler = layers.around(Arc::new(PassFactory)).build(0).unwrap();
        let event = Event::builder("1", "/test", "t").build().unwrap();
        let (pool, name) = ("p".into(), "h".into());
        let attempt =
            Attempt { number: 1, pool, handler: name, worker: 0, fence: None, share: None };
        let started = tokio::time::Instant::now();
        for _ in 0..attempts {
            match handler.handle(&event, &attempt) {
                Handling::Done(_) => unreachable!("layers are futures"),
                Handling::Later(result) => drop(result.await.unwrap()),
            }
        }
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn r07_a_rate_layer_makes_as_many_attempts_as_it_says() {
        for (per_second, attempts, seconds) in
            [(20.0, 200, 9.9), (1_000.0, 5_000, 4.9), (0.5, 6, 10.0), (7.0, 70, 69.0 / 7.0)]
        {
            let took = took(per_second, attempts).await.as_secs_f64();
            // Timers are coarse to a millisecond, of which each window may lose one.
            assert!((seconds - 0.01..seconds * 1.02).contains(&took), "{per_second}/s: {took}");
        }
    }
}
