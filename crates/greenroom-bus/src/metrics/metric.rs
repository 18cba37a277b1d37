//! The names and descriptions of metrics.

/// A metric. Its name is the one of Prometheus' text format, with its unit and, of a counter,
/// `_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// For example `actor_pool_messages_sent_total`.
    pub name: &'static str,
    /// How its values behave.
    pub kind: Kind,
    /// The unit of its values; `None` for counts.
    pub unit: Option<Unit>,
    /// The labels of each series, in this order.
    pub labels: &'static [&'static str],
    /// Its description, in one line.
    pub help: &'static str,
}

spelled! {
    as_str:
    /// How the values of a metric behave.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind {
        /// They only rise while the process lives.
        Counter = "counter",
        /// They rise and fall.
        Gauge = "gauge",
        /// How often something took how long; the counts only rise.
        Histogram = "histogram",
    }
}

spelled! {
    as_str:
    /// The unit of values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unit {
        /// Seconds.
        Seconds = "seconds",
        /// Bytes.
        Bytes = "bytes",
        /// A share, from 0 to 1.
        Ratio = "ratio",
    }
}

impl Metric {
    /// A counter.
    pub const fn counter(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Counter, unit: None, labels, help }
    }

    /// A gauge, which rises and falls.
    pub const fn gauge(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Gauge, unit: None, labels, help }
    }

    /// How often something took how long, in seconds.
    pub const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind: Kind::Histogram, unit: Some(Unit::Seconds), labels, help }
    }

    /// In this unit, which its name ends with.
    pub const fn with_unit(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// The name without its unit and `_total`.
    pub fn stem(&self) -> &'static str {
        let name = match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            _ => self.name,
        };
        let unit = self.unit.and_then(|unit| name.strip_suffix(unit.as_str()));
        unit.and_then(|stem| stem.strip_suffix('_')).unwrap_or(name)
    }
}
