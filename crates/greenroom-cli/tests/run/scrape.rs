//! A look at `/metrics`.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::run::daemon::{Daemon, wait};

/// One scrape.
pub(crate) struct Scrape {
    pub(crate) status: String,
    pub(crate) content_type: String,
    pub(crate) text: String,
    /// The value of each series, by its name and labels as they are written.
    pub(crate) values: BTreeMap<String, f64>,
}

impl Scrape {
    pub(crate) fn of(daemon: &Daemon<'_>) -> Self {
        Self::with(daemon, "")
    }

    /// With headers of the test's own, each with its line end.
    pub(crate) fn with(daemon: &Daemon<'_>, headers: &str) -> Self {
        let mut stream = TcpStream::connect(&daemon.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host = &daemon.address;
        write!(stream, "GET /metrics HTTP/1.0\r\nHost: {host}\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let (status, head) = head.split_once("\r\n").unwrap();
        let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        let series = text.lines().filter(|line| !line.starts_with('#'));
        let values = series.filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        });
        Self {
            status: status.to_owned(),
            content_type: content_type.unwrap_or_default().to_owned(),
            values: values.collect(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn get(&self, series: &str) -> Option<f64> {
        self.values.get(series).copied()
    }

    pub(crate) fn value(&self, series: &str) -> f64 {
        self.get(series).unwrap_or_else(|| panic!("no {series} in\n{}", self.text))
    }

    /// Names and labels of the series that only rise.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&String, &f64)> {
        self.values.iter().filter(|(series, _)| {
            let name = series.split('{').next().unwrap_or_default();
            ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end))
        })
    }
}

/// Scrapes again until it is as wanted.
pub(crate) fn scraped(daemon: &Daemon<'_>, wanted: impl Fn(&Scrape) -> bool) -> Scrape {
    wait(|| Some(Scrape::of(daemon)).filter(&wanted))
}
