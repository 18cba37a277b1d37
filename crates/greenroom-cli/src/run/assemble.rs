//! From a configuration to an engine: opens everything that it names, or says why it could not.

use std::{path::PathBuf, sync::Arc, time::Duration};

use greenroom::{FinalAction, Restarts, batch::Batches, limits::Rate, shares::ShareLimits};
use greenroom_bus::{
    dead_letter::{DeadLetterStore, file::FileDeadLetterStore},
    engine::{self, BuildError, Concurrency, Engine, EngineBuilder},
    event::OrderBy,
    handler::HandlerFactory,
    pattern::Pattern,
    router::{Interest, Matcher},
    source::Source,
    store::letters::LetterStore,
    trace::Recorder,
};

use super::{
    layers::HandlerLayers,
    targets::{self, Targets},
};
use crate::config::{
    self, AckWhen, Config, FieldCondition, HandlerConfig, InputConfig, LettersTo, OnFinalFailure,
    OutputConfig, PoolConfig, ShareConfig,
};

/// The place of dead letters, for readers.
#[derive(Clone)]
pub(crate) enum LettersAt {
    /// A file.
    File(PathBuf),
    /// A store in this directory.
    Store(LetterStore, PathBuf),
    /// A topic or a subject of a broker, with this name.
    Broker(String),
}

/// Builds the engine and starts its pools. Returns also the figures of its layers, and the place of
/// its dead letters.
///
/// # Errors
/// The part that could not be opened or started, and why.
pub(crate) async fn engine(
    config: &Config,
    targets: &Targets,
    recorder: Option<Arc<dyn Recorder>>,
) -> Result<(Engine, HandlerLayers, LettersAt), String> {
    let mut builder = Engine::builder()
        .no_handler(config.no_handler)
        .handler_rejected(config.handler_rejected)
        .outage(config.outage)
        .all_outputs(config.all_outputs)
        .deadline(config.shutdown.deadline)
        .finish(config.shutdown.finish);
    if let Some(recorder) = recorder {
        builder = builder.record(recorder);
    }
    if let Some(audit) = config.audit {
        builder = builder.audit(audit.share);
    }
    if let Some(loopback) = &config.loopback {
        let on = patterns(&loopback.on).map_err(|why| within("option", "loopback", why))?;
        builder = builder.loopback(engine::LoopbackConfig { on, room: loopback.room });
    }
    for input in &config.inputs {
        let source = targets.source(input, &config.pools).await;
        let source = source.map_err(|why| within("input", &input.name, why))?;
        builder = builder.input_named(&input.name, input_config(input), source);
    }
    for pool in &config.pools {
        builder = builder.pool(&pool.name, pool_config(pool));
        for share in pool.named_shares() {
            let limits = share_limits(Some(share), pool);
            builder = builder.share(&pool.name, share.name.as_str(), limits);
        }
    }
    let mut layers = HandlerLayers::default();
    for handler in &config.handlers {
        let within = |why| within("handler", &handler.name, why);
        let mut added = handler_config(handler, targets).map_err(within)?;
        added.factory = layers.around(handler, added.factory).map_err(within)?;
        let added = targets.watch(added, &config.pools);
        builder = builder.handler(&handler.name, added);
    }
    for output in &config.outputs {
        let added = add_output(builder, output, targets).await;
        builder = added.map_err(|why| within("output", &output.name, why))?;
    }
    let (letters, at) = match targets.stand_in_letters() {
        Some(letters) => {
            builder = builder.seed(1);
            (letters, LettersAt::Broker("memory".to_owned()))
        }
        None => dead_letters(config).await?,
    };
    for input in &config.inputs {
        targets::add_to_letters(&*letters, input)
            .map_err(|why| within("input", &input.name, why))?;
    }
    targets.letters(letters.clone());
    builder
        .dead_letters(letters)
        .build()
        .await
        .map(|engine| (engine, layers, at))
        .map_err(|error: BuildError| error.to_string())
}

async fn dead_letters(config: &Config) -> Result<(Arc<dyn DeadLetterStore>, LettersAt), String> {
    match config.dead_letters.destination() {
        LettersTo::Store(config) => {
            let path = config.path.clone();
            let store = LetterStore::open(&path, config.options()?);
            let store = store.map_err(|error| format!("dead_letters.store: {error}"))?;
            Ok((Arc::new(store.clone()), LettersAt::Store(store, path)))
        }
        LettersTo::File(file) => {
            let letters = match file.rotate {
                None => FileDeadLetterStore::open(&file.path),
                Some(when) => FileDeadLetterStore::rotating(&file.path, when),
            };
            let letters = letters.map_err(|error| error.to_string())?;
            Ok((Arc::new(letters), LettersAt::File(file.path.clone())))
        }
        LettersTo::Broker(broker) => {
            let letters = broker.open().await.map_err(|why| format!("dead_letters: {why}"))?;
            Ok((letters, LettersAt::Broker(broker.place())))
        }
    }
}

pub(super) fn input_config(input: &InputConfig) -> engine::InputConfig {
    engine::InputConfig {
        run_ahead: input.run_ahead,
        in_flight_bytes: input.in_flight,
        commit_every: input.commit_every,
        max_depth: input.max_depth,
        ..engine::InputConfig::default()
    }
}

fn within(what: &str, name: &str, why: String) -> String {
    format!("{what} `{name}`: {why}")
}

/// The source of an input, for a read-only caller: nothing is settled or written, and no connection
/// is accepted.
pub(crate) async fn looking(
    input: &InputConfig,
    config: &Config,
) -> Result<Box<dyn Source>, String> {
    input.kind.look(&input.setup(&config.pools)?).await
}

fn pool_config(pool: &PoolConfig) -> engine::PoolConfig {
    engine::PoolConfig {
        workers: pool.workers,
        queue: pool.queue,
        engine: pool.engine,
        event_stream: pool.event_stream,
        max_per_key: pool.max_per_key,
        batch_bytes: pool.batch.and_then(|batch| batch.bytes),
        timeout: pool.timeout,
        batches: pool.batch.map(|batch| Batches::of(batch.events).within(batch.within)),
        on_final_failure: match pool.on_final_failure {
            OnFinalFailure::Skip => FinalAction::DeadLetter,
            OnFinalFailure::Park => FinalAction::ParkKey,
            OnFinalFailure::Stop => FinalAction::StopPool,
        },
        on_full: pool.on_full,
        restarts: Restarts { max: pool.max_restarts, ..Restarts::default() },
        rate: pool.rate.map(rate),
        concurrency: match pool.adaptive_limit() {
            Some(limit) => Some(Concurrency::Adaptive(limit.into())),
            None => pool.fixed_limit().map(Concurrency::Fixed),
        },
        autoscale: pool.autoscale,
        advisor: pool.advised(),
        dedicated_threads: pool.dedicated_threads,
        weight: pool.weight,
        share_limits: share_limits(None, pool),
        share_queue: pool.share_queue,
        on_share_full: pool.on_share_full,
        ..engine::PoolConfig::default()
    }
}

/// The limits of a share; without one, the limits of all shares that are not named.
pub(super) fn share_limits(share: Option<&ShareConfig>, pool: &PoolConfig) -> ShareLimits {
    fn first<T: Copy>(
        (share, pool): (Option<&ShareConfig>, &PoolConfig),
        option: impl Fn(&ShareConfig) -> Option<T>,
    ) -> Option<T> {
        share.and_then(&option).or_else(|| pool.share_defaults().and_then(&option))
    }
    let said = (share, pool);
    ShareLimits::default()
        .weight(first(said, |share| share.weight).unwrap_or(1))
        .in_hand(first(said, |share| share.in_hand))
        .rate(first(said, |share| share.rate).map(rate))
}

/// A rate in whole numbers, as a pool counts: per second or, if that is no whole number, per day.
pub(crate) fn rate(rate: config::Rate) -> Rate {
    const DAY: Duration = Duration::from_secs(86_400);
    /// The largest number that a pool counts to.
    const MOST: f64 = 1e9;
    let a_day = rate.per_second * DAY.as_secs_f64();
    match rate.per_second.fract() == 0.0 || a_day > MOST {
        true => Rate::per_second(rate.per_second.round() as u64),
        false => Rate::new(a_day.round() as u64, DAY),
    }
}

fn handler_config(
    config: &HandlerConfig,
    targets: &Targets,
) -> Result<engine::HandlerConfig, String> {
    routed(config, targets.factory(config)?)
}

/// A handler as configured, except for its action.
pub(crate) fn routed(
    config: &HandlerConfig,
    factory: Arc<dyn HandlerFactory>,
) -> Result<engine::HandlerConfig, String> {
    let mut handler = engine::HandlerConfig::new(patterns(&config.on)?, factory);
    handler.pool.clone_from(&config.pool);
    handler.matcher = matching(matcher(&config.matches)?, &config.conditions)?;
    handler.fan_out = config.fan_out;
    handler.loopback = config.loopback;
    if config.ack == AckWhen::OnSuccess {
        handler.ack = engine::AckWhen::OnSuccess;
    }
    handler.key_required = config.key_required;
    handler.order_by = match &config.order_by {
        Some(order_by) => Some(order_by.parse::<OrderBy>().map_err(|error| error.to_string())?),
        None => None,
    };
    handler.share_by = match &config.share_by {
        Some(share_by) => Some(share_by.parse::<OrderBy>().map_err(|error| error.to_string())?),
        None => None,
    };
    handler.retry = Some(config.retry);
    Ok(handler)
}

pub(super) fn matcher(matches: &[(String, String)]) -> Result<Matcher, String> {
    matches.iter().try_fold(Matcher::any(), |matcher, (name, like)| {
        let like = like.parse().map_err(|error| format!("match.{name}: {error}"))?;
        Ok(matcher.attribute(name, like))
    })
}

/// The events that also meet these conditions.
pub(super) fn matching(matcher: Matcher, asked: &[FieldCondition]) -> Result<Matcher, String> {
    asked.iter().try_fold(matcher, |matcher, asked| {
        let field = asked.asked().map_err(|error| format!("where: {error}"))?;
        Ok(asked
            .conditions()
            .into_iter()
            .fold(matcher, |matcher, condition| matcher.field(field, condition)))
    })
}

/// The events that an output takes.
pub(crate) fn interest(output: &OutputConfig) -> Result<Interest, String> {
    let matcher = matching(Matcher::any(), &output.conditions)?;
    Ok(Interest { matcher, ..Interest::new(patterns(&output.on)?) })
}

pub(crate) fn patterns(on: &[String]) -> Result<Vec<Pattern>, String> {
    on.iter().map(|on| on.parse::<Pattern>().map_err(|error| error.to_string())).collect()
}

async fn add_output(
    builder: EngineBuilder,
    output: &OutputConfig,
    targets: &Targets,
) -> Result<EngineBuilder, String> {
    let Interest { on, matcher } = interest(output)?;
    Ok(builder.output_where(&output.name, on, matcher, targets.sink(output).await?))
}
