//! The reference page of the metrics, generated from them.

use std::{fmt::Write, path::Path};

use greenroom_bus::metrics::{self, BUSIEST, MOST_PARTITIONS, Metric};

use super::own;

const HEAD: &str = "\
# Metrics

<!-- Written from the code; a test keeps it current. -->

`GET /metrics` of the [admin listener](admin.md) serves the metrics on this page, in Prometheus' text format 0.0.4 or, if the `Accept`
of the request asks for it, in OpenMetrics 1.0.0. With a `token`, a scrape must send it:

```yaml
scrape_configs:
  - job_name: greenroom
    authorization: { credentials_file: /run/secrets/greenroom-admin }
    static_configs: [{ targets: [127.0.0.1:7070] }]
```

- A scrape measures nothing. It reads what pools, inputs and the ledger count anyway, so it costs the events nothing. It is answered
  while every queue is full, while every handler blocks its thread, and during a shutdown.
- Times of pools are sampled: one message in 512 if handlers are quick, one in eight if they take longer than 2 µs, every message if
  they take longer than 32 µs. `greenroom_event_residence_seconds` counts every event.
- Ages and rates are updated once a second.
- The number of series is bounded. No label contains a key. The label `actor_id` (`erp-17`: worker 17 of the pool `erp`) needs
  `admin: { metrics: { per_worker: true } }`; sums over a pool are the same without it. An input with more than PARTITIONS partitions
  has only sums. In a pool with [shares](shares.md), the BUSIEST busiest have series, by time in hand and waiting events in the last
  minutes; `other` has the rest together. A scrape looks at every waiting event of such a pool.
- A counter falls only when greenroom restarts. An input or output that a reload removes keeps its counts.
- A series is missing if there is no value: a limit that is not set, the lag of a source that does not know it, ages of an input that
  keeps no positions.
- OpenMetrics names a counter without `_total` in its `HELP` and `TYPE`, and has its unit in `UNIT`; the classic format has no units.

[`deploy/prometheus/alerts.yaml`](../deploy/prometheus/alerts.yaml) has alerts on these metrics, and
[`deploy/grafana/greenroom.json`](../deploy/grafana/greenroom.json) is a board. In the library, `greenroom_bus::metrics::Observer` gives the
same figures, and `Feed` (cargo feature `metrics`) sends them to the recorder of the `metrics` facade once a second.
";

fn page() -> String {
    let mut page = HEAD
        .replace("PARTITIONS", &MOST_PARTITIONS.to_string())
        .replace("BUSIEST", &BUSIEST.to_string());
    let all: Vec<&Metric> = metrics::all().chain(own::METRICS.iter().copied()).collect();
    for (title, prefix) in [
        ("Pools", "actor_pool_"),
        ("Handlers", "handler"),
        ("Inputs and their partitions", "greenroom_input_"),
        ("Outputs", "greenroom_output_"),
        ("The run", "greenroom_"),
        ("The process", "process_"),
    ] {
        let _ = write!(
            page,
            "\n## {title}\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
        );
        let of = all.iter().filter(|metric| group(metric) == prefix);
        of.for_each(|metric| page.push_str(&row(metric)));
    }
    page
}

/// The section of a metric.
fn group(metric: &Metric) -> &'static str {
    match metric.name {
        name if name.starts_with("actor_pool_") => "actor_pool_",
        name if name.starts_with("process_") => "process_",
        name if name.starts_with("greenroom_output_") => "greenroom_output_",
        _ if metric.labels.contains(&"handler") => "handler",
        _ if metric.labels.contains(&"input") => "greenroom_input_",
        _ => "greenroom_",
    }
}

fn row(metric: &Metric) -> String {
    let Metric { name, kind, labels, help, .. } = metric;
    let unit = metric.unit.map_or("", |unit| unit.as_str());
    let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
    format!("| `{name}` | {} | {unit} | {} | {help} |\n", kind.as_str(), labels.join(", "))
}

/// `GREENROOM_WRITE_REFERENCE=1 cargo test -p greenroom-cli reference_page` writes it after a
/// change to the metrics.
#[test]
fn o03_the_reference_page_of_the_metrics_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("GREENROOM_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    let differs = written.lines().zip(page().lines()).position(|(is, to)| is != to);
    assert!(
        written == page(),
        "docs/metrics.md differs from line {differs:?} (counted from 0) on: \
         GREENROOM_WRITE_REFERENCE=1 cargo test -p greenroom-cli reference_page"
    );
}
