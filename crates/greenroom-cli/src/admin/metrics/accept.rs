//! Chooses the text format for a scrape.

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsFormat {
    /// Prometheus' own format, version 0.0.4: for clients that do not ask for the other.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl MetricsFormat {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The format that an `Accept` prefers. OpenMetrics only if it is named: a client that accepts
/// everything may not understand it.
pub(super) fn chosen(accept: &str) -> MetricsFormat {
    let ranges = || accept.split(',').filter_map(Range::parse);
    let quality = |is_it: fn(&Range<'_>) -> bool| {
        ranges().filter(is_it).map(|range| range.quality).fold(0.0, f32::max)
    };
    let open_metrics = quality(|range| range.is_open_metrics());
    let prometheus = quality(|range| range.media_type.eq_ignore_ascii_case("text/plain"));
    match open_metrics > 0.0 && open_metrics >= prometheus {
        true => MetricsFormat::OpenMetrics,
        false => MetricsFormat::Prometheus,
    }
}

/// One of the media types that a client accepts.
struct Range<'a> {
    media_type: &'a str,
    version: Option<&'a str>,
    quality: f32,
}

impl<'a> Range<'a> {
    /// `None` if it cannot be parsed.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next()?;
        let mut range = Self { media_type, version: None, quality: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => range.quality = value.parse().ok().filter(|q| (0.0..=1.0).contains(q))?,
                "version" => range.version = Some(value),
                _ => {}
            }
        }
        Some(range)
    }

    fn is_open_metrics(&self) -> bool {
        self.media_type.eq_ignore_ascii_case("application/openmetrics-text")
            && self.version.is_none_or(|version| version == "1.0.0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o02_open_metrics_is_for_who_names_it_and_the_other_format_for_all_others() {
        // As of Prometheus 2.42, 2.49 and 3, in this order.
        for prefers in [
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;q=0.3,*/*;q=0.2",
            "Application/OpenMetrics-Text; Version=\"1.0.0\"",
        ] {
            assert_eq!(chosen(prefers), MetricsFormat::OpenMetrics, "{prefers}");
        }
        for other in [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0,text/plain",
            "application/openmetrics-text;q=0.2,text/plain;q=0.9",
            "application/openmetrics-text;q=much",
        ] {
            assert_eq!(chosen(other), MetricsFormat::Prometheus, "{other}");
        }
    }
}
