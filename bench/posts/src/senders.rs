//! Those who post, and those who append without HTTP.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use greenroom_bus::{
    event::Event,
    store::log::{EventLog, SegmentLog},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    Failed,
    request::{Request, filler, id},
};

/// When an append was answered, and how long it took.
pub type Answered = (Instant, Duration);

pub async fn append(
    log: SegmentLog,
    sender: usize,
    batch: usize,
    until: Instant,
) -> Result<Vec<Answered>, Failed> {
    let (mut answered, filler) = (Vec::new(), filler());
    while Instant::now() < until {
        let from = answered.len() * batch;
        let events: Result<Vec<_>, _> = (from..from + batch)
            .map(|n| Event::builder(id(sender, n), "/bench", "t").data_json(&filler).build())
            .collect();
        let events = events?;
        let started = Instant::now();
        log.append(events).await?;
        let ended = Instant::now();
        answered.push((ended, ended - started));
    }
    Ok(answered)
}

pub async fn post(
    to: SocketAddr,
    sender: usize,
    batch: usize,
    until: Instant,
) -> Result<Vec<Answered>, Failed> {
    let mut stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (mut answered, mut answer) = (Vec::new(), vec![0; 4_096]);
    let mut request = Request::new(sender, batch);
    while Instant::now() < until {
        let bytes = request.next();
        let started = Instant::now();
        stream.write_all(bytes).await?;
        let read = stream.read(&mut answer).await?;
        if !answer[..read].starts_with(b"HTTP/1.1 202") {
            return Err(String::from_utf8_lossy(&answer[..read]).into());
        }
        let ended = Instant::now();
        answered.push((ended, ended - started));
    }
    Ok(answered)
}
