//! A page that is left open, and a scraper.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::Failure;

/// As often as one would ask at most.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);
/// Between looks at whether it is over.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);

/// Listens as a page does, until told to stop. Gives the number of bytes that came.
pub fn page(port: u16, is_over: &AtomicBool) -> Result<u64, Failure> {
    let mut stream = asked(port, "/api/live")?;
    stream.set_read_timeout(Some(LOOK))?;
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return Err("the live stream has ended".into()),
            Ok(count) => bytes += count as u64,
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Scrapes each second, until told to stop. Gives the seconds that each scrape took.
pub fn scraper(port: u16, is_over: &AtomicBool) -> Result<Vec<f64>, Failure> {
    let mut took = Vec::new();
    let mut next = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let mut page = String::new();
        asked(port, "/metrics")?.read_to_string(&mut page)?;
        if !page.contains("actor_pool_messages_processed_total") {
            return Err(format!("that is no page of metrics: {page:.200}").into());
        }
        took.push(begun.elapsed().as_secs_f64());
        next += SCRAPE_EVERY;
        while !is_over.load(Ordering::Relaxed) && Instant::now() < next {
            std::thread::sleep(LOOK);
        }
    }
    Ok(took)
}

fn asked(port: u16, path: &str) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n")?;
    Ok(stream)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
