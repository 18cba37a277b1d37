//! Sizes of pools and how far they may be changed while greenroom runs.

use greenroom::event_pool::Engine;
use greenroom_config::{Places, Problem, Problems};

use super::options::{Autotune, Config, PoolConfig};

/// Reports sizes outside of their bounds, and pools that are to act without bounds.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut checker = SizeChecker { places, problems };
    for pool in &config.pools {
        let path = format!("pools.{}", pool.name);
        checker.bounds(pool, &path);
        let handles = config.handlers.iter().any(|handler| handler.pool == pool.name);
        if pool.autotune == Autotune::Act && (handles || places.has(&path)) {
            checker.acts(pool, &path);
        }
    }
}

struct SizeChecker<'a> {
    places: &'a Places,
    problems: &'a mut Problems,
}

impl SizeChecker<'_> {
    fn error(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::error(message, self.places.at(path).place).help(help));
    }

    /// Sizes begin within their bounds, and nothing is bounded twice.
    fn bounds(&mut self, pool: &PoolConfig, path: &str) {
        let Some(bounds) = pool.bounds else { return };
        if bounds.workers.is_some() && pool.autoscale.is_some() {
            let text = "the workers have two bounds: these, and those of `autoscale`";
            let help = "leave `workers` out here: `autoscale` has `min` and `max`";
            return self.error(&format!("{path}.bounds.workers"), text, help);
        }
        let sizes = [
            ("workers", pool.workers, bounds.workers, ["workers", "preset"]),
            ("queue", pool.queue, bounds.queue, ["queue", "inbox_size"]),
        ];
        for (what, size, range, written) in sizes {
            let Some(range) =
                range.filter(|range| !(range.from..=range.to).contains(&(size as u64)))
            else {
                continue;
            };
            let text = format!("the pool would begin with {what} {size}, outside of {range}");
            let at = written.map(|name| format!("{path}.{name}"));
            let own = format!("{path}.bounds.{what}");
            let at = at.iter().find(|at| self.places.has(at)).unwrap_or(&own).clone();
            self.error(&at, text, format!("write `{what}` within its bounds, or widen those"));
        }
    }

    /// It is known how far it may go, and it can.
    fn acts(&mut self, pool: &PoolConfig, path: &str) {
        let own = format!("{path}.autotune");
        let at = if self.places.has(&own) { own } else { "autotune".to_owned() };
        if pool.engine == Engine::Sticky {
            let text = format!(
                "nothing can act on the pool `{}`: with `engine: sticky` each worker has a queue \
                 whose size stays",
                pool.name
            );
            return self.error(&at, text, "write `autotune: say` in it");
        }
        let (workers, queue) = (pool.workers as u64, pool.queue as u64);
        let missing = [
            ("workers", pool.autoscale.is_none(), workers.div_ceil(2), (workers * 4).min(65_536)),
            ("queue", true, queue.div_ceil(10), (queue * 10).min(10_000_000)),
        ];
        let given = |what| match pool.bounds {
            Some(bounds) if what == "workers" => bounds.workers.is_some(),
            Some(bounds) => bounds.queue.is_some(),
            None => false,
        };
        let missing: Vec<_> = missing
            .into_iter()
            .filter(|(what, needed, ..)| *needed && !given(*what))
            .map(|(what, _, from, to)| format!("{what}: {from}..{to}"))
            .collect();
        if !missing.is_empty() {
            let text = format!(
                "`autotune: act` needs to know how far it may go with the pool `{}`",
                pool.name
            );
            let help = format!(
                "add `bounds: {{ {} }}` to `{path}`, with what the machine and the targets bear",
                missing.join(", ")
            );
            self.error(&at, text, help);
        }
    }
}
