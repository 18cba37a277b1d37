//! From checked records to typed structs. What a record lacks was wrong and has been reported: then its part is
//! left out, so that the rest can still be looked at.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use greenroom::{
    autoscale::Autoscale,
    event_pool::{Engine, Preset},
    limits::Adaptive,
};
use greenroom_config::{
    problem::{Problem, Problems},
    record::{Places, Record},
    units,
};

use super::{
    layers::{Breaker, LayerConfig, Layers},
    types::{
        AdminConfig, Batch, Config, ExecConfig, GeneratorConfig, HandlerConfig, HandlerKind,
        HttpConfig, HttpMode, InputConfig, InputKind, LoopbackConfig, NoHandler, OnFinalFailure,
        OnFull, OutageConfig, OutputConfig, PoolConfig, Retry,
    },
};

/// The `order_by` of a handler that keeps no order, whatever its pool says.
const NO_ORDER: &str = "none";

/// What a pool can hold.
const MAX_QUEUE: usize = 100_000_000;

/// Builds what can be built.
pub(super) struct Builder<'a> {
    /// Where relative paths start.
    pub(super) directory: &'a Path,
    /// Where things were written.
    pub(super) places: &'a Places,
    /// Takes what only shows when values are put together.
    pub(super) problems: &'a mut Problems,
    /// The circuit breakers that handlers share, each with where it was met first.
    pub(super) breakers: HashMap<String, (Breaker, String)>,
}

impl Builder<'_> {
    /// The configuration; parts that had problems are missing from it.
    pub(super) fn config(&mut self, mut root: Record) -> Option<Config> {
        let mut outage = root.group("outage")?;
        let buffer = narrow(root.count("buffer")?);
        let pools = self.pools(root.named("pools").unwrap_or_default(), buffer);
        Some(Config {
            inputs: each(root.named("inputs"), |name, record| self.input(name, record)),
            handlers: each(root.named("handlers"), |name, record| {
                self.handler(name, record, &pools)
            }),
            pools,
            outputs: each(root.named("outputs"), |name, record| self.output(name, record)),
            all_outputs: root.flag("all_outputs")?,
            no_handler: no_handler(root.text("no_handler").as_deref()),
            handler_rejected: no_handler(root.text("handler_rejected").as_deref()),
            loopback: match root.group("loopback") {
                Some(loopback) => Some(self::loopback(loopback)?),
                None => None,
            },
            dead_letters: self.path(root.group("dead_letters")?.group("file")?.text("path")?),
            shutdown_deadline: root.group("shutdown")?.duration("deadline")?,
            admin: root.group("admin").and_then(|admin| self.admin(admin)),
            outage: OutageConfig {
                failures: narrow(outage.count("failures")?),
                window: outage.duration("window")?,
                limit: outage.duration("limit")?,
            },
        })
    }

    fn admin(&mut self, mut record: Record) -> Option<AdminConfig> {
        let (written, token) = (record.text("listen")?, record.text("token"));
        let at = self.places.at("admin.listen");
        let Some(listen) = units::listen_address(&written) else {
            let text = format!("`{}` is no address to listen at", at.show(&written));
            let port = written.trim_start_matches(':').parse::<u16>().ok();
            let help = match port.filter(|_| at.origin.is_none()) {
                Some(port) => format!("did you mean `127.0.0.1:{port}`?"),
                None => "an IP address and a port, such as `127.0.0.1:7070`".to_owned(),
            };
            self.problems.push(Problem::error(text, at.place).help(help));
            return None;
        };
        if !listen.ip().is_loopback() && token.is_none() {
            let text = "an admin listener that other machines can reach needs a `token`";
            let help = "add `token: \"file:/run/secrets/greenroom-admin\"`, or listen at 127.0.0.1";
            self.problems.push(Problem::error(text, at.place).help(help));
            return None;
        }
        Some(AdminConfig { listen, token })
    }

    fn input(&self, name: String, mut record: Record) -> Option<InputConfig> {
        let kind = if let Some(mut file) = record.group("file") {
            InputKind::File {
                path: self.path(file.text("path")?),
                max_event: file.count("max_event")?,
                checkpoint: file.text("checkpoint").map(|checkpoint| self.path(checkpoint)),
            }
        } else {
            InputKind::Generator(generator(record.group("generator")?)?)
        };
        let (run_ahead, in_flight) =
            (narrow(record.count("run_ahead")?), record.count("in_flight")?);
        Some(InputConfig { name, kind, run_ahead, in_flight })
    }

    fn pools(&mut self, records: Vec<(String, Record)>, buffer: usize) -> Vec<PoolConfig> {
        let named_default = records.iter().any(|(name, _)| name == "default");
        let default = PoolConfig {
            name: "default".to_owned(),
            workers: 1,
            queue: buffer,
            engine: Engine::default(),
            max_per_key: None,
            batch: None,
            on_full: OnFull::Pause,
            timeout: None,
            max_restarts: 3,
            on_final_failure: OnFinalFailure::Skip,
            event_stream: true,
            rate: None,
            limit: None,
            adaptive: None,
            autoscale: None,
            dedicated_threads: None,
            weight: None,
            order_by: None,
            retry: None,
        };
        let mut pools = if named_default { Vec::new() } else { vec![default] };
        pools.extend(each(Some(records), |name, record| self.pool(name, record, buffer)));
        pools
    }

    fn pool(&mut self, name: String, mut record: Record, buffer: usize) -> Option<PoolConfig> {
        let preset = record.text("preset").and_then(|name| Preset::named(&name));
        let path = format!("pools.{name}");
        // One that had a problem is left out, so that the rest of the pool is still looked at.
        let autoscale = record.group("autoscale");
        let autoscale = autoscale.and_then(|record| self.autoscale(&path, record));
        let workers = narrow(record.count("workers")?);
        let workers = match (preset, autoscale) {
            _ if self.places.has(&format!("{path}.workers")) => workers,
            (Some(preset), _) => preset.pool_size(),
            (None, Some(autoscale)) => autoscale.min,
            (None, None) => workers,
        };
        let adaptive = record.group("limit").and_then(|mut limit| limit.group("adaptive"));
        let adaptive = adaptive.and_then(|record| self.adaptive(&path, record));
        Some(PoolConfig {
            workers,
            queue: self.queue(
                &name,
                &mut record,
                workers,
                preset.map_or(buffer, |preset| workers.saturating_mul(preset.inbox_size())),
            )?,
            engine: engine(&record.text("engine")?),
            max_per_key: record.count("max_per_key").map(narrow),
            batch: match record.group("batch") {
                Some(batch) => Some(self::batch(batch)?),
                None => None,
            },
            on_full: on_full(&record.text("on_full")?),
            timeout: record.duration("timeout"),
            max_restarts: narrow(record.count("max_restarts")?),
            on_final_failure: on_final_failure(&record.text("on_final_failure")?),
            event_stream: record.flag("enable_event_stream")?,
            rate: record.rate("rate"),
            limit: record.count("limit").map(narrow),
            adaptive,
            autoscale,
            dedicated_threads: record.count("dedicated_threads").map(narrow),
            order_by: record.text("order_by"),
            retry: record.group("retry").and_then(retry),
            weight: record.count("weight").map(narrow),
            name,
        })
    }

    fn queue(
        &mut self,
        pool: &str,
        record: &mut Record,
        workers: usize,
        inherited: usize,
    ) -> Option<usize> {
        let inbox = format!("pools.{pool}.inbox_size");
        let queue = match (record.count("queue"), record.count("inbox_size")) {
            (Some(_), Some(_)) => {
                let problem = Problem::error(
                    "`inbox_size` and `queue` are two ways to say the same",
                    self.places.at(&inbox).place,
                );
                self.problems.push(problem.help("keep `queue`, which counts for the whole pool"));
                return None;
            }
            (Some(queue), None) => narrow(queue),
            (None, Some(each)) => workers.saturating_mul(narrow(each)),
            (None, None) => inherited,
        };
        if queue <= MAX_QUEUE {
            return Some(queue);
        }
        let at = if self.places.has(&inbox) { inbox } else { format!("pools.{pool}.workers") };
        let text = format!(
            "{queue} events may wait for these {workers} workers, which is above 100000000"
        );
        let most = MAX_QUEUE / workers;
        let problem = Problem::error(text, self.places.at(&at).place);
        self.problems.push(problem.help(format!("`inbox_size` may be {most} at most here")));
        None
    }

    fn autoscale(&mut self, pool: &str, mut record: Record) -> Option<Autoscale> {
        let (min, max) = (narrow(record.count("min")?), narrow(record.count("max")?));
        let path = format!("{pool}.autoscale.min");
        self.ordered(&path, ("min", min), ("max", max))?;
        Some(
            Autoscale::between(min, max)
                .target_age(record.duration("target_age")?)
                .up_cooldown(record.duration("up_cooldown")?)
                .down_cooldown(record.duration("down_cooldown")?)
                .busy_share(record.number("busy_share")?),
        )
    }

    fn adaptive(&mut self, pool: &str, mut record: Record) -> Option<Adaptive> {
        let (min, max) = (narrow(record.count("min")?), narrow(record.count("max")?));
        let path = format!("{pool}.limit.adaptive");
        self.ordered(&format!("{path}.min"), ("min", min), ("max", max))?;
        let mut limit = Adaptive::up_to(max)
            .min(min)
            .window(record.duration("window")?)
            .tolerance(record.number("tolerance")?);
        if let Some(initial) = record.count("initial").map(narrow) {
            let path = format!("{path}.initial");
            self.ordered(&path, ("min", min), ("initial", initial))?;
            self.ordered(&path, ("initial", initial), ("max", max))?;
            limit = limit.initial(initial);
        }
        Some(if record.flag("observe")? { limit } else { limit.enforced() })
    }

    /// Reports at `path` where the first is above the second.
    fn ordered(&mut self, path: &str, low: (&str, usize), high: (&str, usize)) -> Option<()> {
        if low.1 <= high.1 {
            return Some(());
        }
        let text =
            format!("`{}` is {} and `{}` is {}, which is less", low.0, low.1, high.0, high.1);
        let help = format!("lower `{}`, or raise `{}`", low.0, high.0);
        self.problems.push(Problem::error(text, self.places.at(path).place).help(help));
        None
    }

    fn handler(
        &mut self,
        name: String,
        mut record: Record,
        pools: &[PoolConfig],
    ) -> Option<HandlerConfig> {
        let pool = record.text("pool")?;
        let of_pool = pools.iter().find(|found| found.name == pool);
        let retry = self.handler_retry(
            &format!("handlers.{name}.retry"),
            record.group("retry").and_then(self::retry)?,
            of_pool.and_then(|pool| pool.retry),
        );
        let order_by = record.text("order_by").or(of_pool.and_then(|pool| pool.order_by.clone()));
        Some(HandlerConfig {
            on: record.texts("on")?,
            matches: record.variables("match")?,
            fan_out: record.flag("fan_out")?,
            ack_on_success: record.text("ack")? == "on_success",
            loopback: narrow(record.count("loopback")?),
            pool,
            order_by: order_by.filter(|order_by| order_by != NO_ORDER),
            key_required: record.flag("key_required")?,
            attempts: retry.attempts,
            backoff: retry.backoff,
            retry_total: retry.total,
            layers: self.layers(&name, record.list("layers").unwrap_or_default()),
            kind: self.handler_kind(&mut record)?,
            name,
        })
    }

    fn layers(&mut self, handler: &str, records: Vec<Record>) -> Vec<LayerConfig> {
        let Self { directory, places, problems, breakers } = self;
        Layers { directory, places, problems, shared: breakers }.of(handler, records)
    }

    /// What a handler has written itself, and its pool's for the rest.
    fn handler_retry(&self, path: &str, own: Retry, of_pool: Option<Retry>) -> Retry {
        let Some(of_pool) = of_pool else { return own };
        let written = |name: &str| self.places.has(&format!("{path}.{name}"));
        Retry {
            attempts: if written("attempts") { own.attempts } else { of_pool.attempts },
            backoff: if written("backoff") { own.backoff } else { of_pool.backoff },
            total: own.total.or(of_pool.total),
        }
    }

    fn handler_kind(&self, record: &mut Record) -> Option<HandlerKind> {
        if let Some(mut simulate) = record.group("simulate") {
            return Some(HandlerKind::Simulate {
                latency: simulate.range("latency")?,
                failures: simulate.number("failures")?,
                seed: simulate.count("seed"),
            });
        }
        if let Some(exec) = record.group("exec") {
            return self.exec(exec).map(HandlerKind::Exec);
        }
        if let Some(http) = record.group("http") {
            return self::http(http).map(HandlerKind::Http);
        }
        let bare =
            [("pass", HandlerKind::Pass), ("log", HandlerKind::Log), ("drop", HandlerKind::Drop)];
        bare.into_iter().find_map(|(name, kind)| record.group(name).map(|_| kind))
    }

    fn exec(&self, mut record: Record) -> Option<ExecConfig> {
        let mut restart = record.group("restart")?;
        let beside = Some(self.directory.to_owned()).filter(|dir| !dir.as_os_str().is_empty());
        Some(ExecConfig {
            command: record.texts("command")?,
            timeout: record.duration("timeout")?,
            restart_max: narrow(restart.count("max")?),
            restart_window: restart.duration("window")?,
            env: record.variables("env")?,
            cwd: record.text("cwd").map(|cwd| self.path(cwd)).or(beside),
        })
    }

    fn output(&self, name: String, mut record: Record) -> Option<OutputConfig> {
        let mut file = record.group("file")?;
        Some(OutputConfig {
            on: record.texts("on")?,
            path: self.path(file.text("path")?),
            truncate: file.flag("truncate")?,
            name,
        })
    }

    fn path(&self, written: String) -> PathBuf {
        if written == "-" { PathBuf::from(written) } else { self.directory.join(written) }
    }
}

fn each<T>(
    records: Option<Vec<(String, Record)>>,
    mut build: impl FnMut(String, Record) -> Option<T>,
) -> Vec<T> {
    records
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, record)| build(name, record))
        .collect()
}

fn retry(mut record: Record) -> Option<Retry> {
    let attempts = narrow(record.count("attempts")?);
    Some(Retry { attempts, backoff: record.range("backoff")?, total: record.duration("total") })
}

fn generator(mut record: Record) -> Option<GeneratorConfig> {
    Some(GeneratorConfig {
        count: record.count("count"),
        rate: record.rate("rate"),
        keys: record.count("keys")?,
        zipf: record.number("zipf")?,
        types: record.texts("types")?,
        payload: record.count("payload")?,
        seed: record.count("seed")?,
    })
}

fn loopback(mut record: Record) -> Option<LoopbackConfig> {
    Some(LoopbackConfig { on: record.texts("on")?, room: narrow(record.count("room")?) })
}

fn http(mut record: Record) -> Option<HttpConfig> {
    let structured = record.text("mode")? == "structured";
    Some(HttpConfig {
        url: record.text("url")?,
        timeout: record.duration("timeout")?,
        max_response: record.count("max_response")?,
        mode: if structured { HttpMode::Structured } else { HttpMode::Binary },
        pass: record.flag("pass")?,
        status: record.variables("status")?,
    })
}

fn no_handler(word: Option<&str>) -> NoHandler {
    match word {
        Some("ignore") => NoHandler::Ignore,
        Some("refuse") => NoHandler::Refuse,
        _ => NoHandler::DeadLetter,
    }
}

fn engine(word: &str) -> Engine {
    Engine::ALL.iter().copied().find(|engine| engine.name() == word).unwrap_or_default()
}

fn on_final_failure(word: &str) -> OnFinalFailure {
    match word {
        "park" => OnFinalFailure::Park,
        "stop" => OnFinalFailure::Stop,
        _ => OnFinalFailure::Skip,
    }
}

fn batch(mut record: Record) -> Option<Batch> {
    let events = narrow(record.count("events")?);
    let bytes = record.count("bytes").map(narrow);
    Some(Batch { events, within: record.duration("within")?, bytes })
}

fn on_full(word: &str) -> OnFull {
    match word {
        "reject" => OnFull::Reject,
        "dead_letter" => OnFull::DeadLetter,
        _ => OnFull::Pause,
    }
}

/// The table's ranges lie within every type used here.
fn narrow<T: TryFrom<u64> + Bounded>(value: u64) -> T {
    T::try_from(value).unwrap_or(T::MAX)
}

trait Bounded {
    const MAX: Self;
}

impl Bounded for u32 {
    const MAX: Self = u32::MAX;
}

impl Bounded for usize {
    const MAX: Self = usize::MAX;
}
