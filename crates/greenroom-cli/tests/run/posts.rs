//! A client that posts events, one request after the other on a connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use crate::run::daemon::{Daemon, wait};

pub(crate) const STRUCTURED: &str = "application/cloudevents+json";
pub(crate) const BATCH: &str = "application/cloudevents-batch+json";

/// A connection that is kept.
pub(crate) struct Posts<S = TcpStream>(BufReader<S>);

/// What was answered.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Where the only `http` input of a run listens.
pub(crate) fn address(daemon: &Daemon<'_>) -> String {
    wait(|| address_in(&daemon.log()))
}

pub(crate) fn address_in(log: &str) -> Option<String> {
    let (_, rest) = log.split_once("events can be posted")?;
    let (_, rest) = rest.split_once("address=")?;
    let (address, _) = rest.split_once('\n')?;
    Some(address.trim().to_owned())
}

impl Posts {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Posts<S> {
    /// Over a connection that is made.
    pub(crate) fn over(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    /// Posts with these headers, each with its line end.
    pub(crate) fn post(&mut self, headers: &str, body: &str) -> io::Result<Told> {
        self.post_to("/events", headers, body)
    }

    pub(crate) fn post_to(&mut self, path: &str, headers: &str, body: &str) -> io::Result<Told> {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: h\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Told> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    /// One event in structured mode.
    pub(crate) fn event(&mut self, event: &Value) -> io::Result<Told> {
        self.post(&format!("content-type: {STRUCTURED}\r\n"), &event.to_string())
    }

    pub(crate) fn batch(&mut self, events: &[Value]) -> io::Result<Told> {
        let body = Value::from(events.to_vec()).to_string();
        self.post(&format!("content-type: {BATCH}\r\n"), &body)
    }

    fn answer(&mut self) -> io::Result<Told> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let length = lines.find(|(name, _)| *name == "content-length").map(|(_, length)| length);
        let mut body = vec![0; length.unwrap_or("0").parse().unwrap()];
        self.0.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Told { status, body })
    }
}
