//! A receiver of OTLP over HTTP that takes all and looks at nothing.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::Failure;

/// Requests that were taken.
pub type Taken = Arc<AtomicU64>;

/// Listens until the process ends.
pub fn start() -> Result<(u16, Taken), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let taken = Taken::default();
    let counter = taken.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counter = counter.clone();
            // A client that goes away has ended its connection, and nothing else.
            thread::spawn(move || serve(stream, &counter).ok());
        }
    });
    Ok((port, taken))
}

fn serve(stream: TcpStream, taken: &AtomicU64) -> Result<(), Failure> {
    let mut answers = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let Some((name, value)) = line.split_once(':') else {
                if line.trim().is_empty() {
                    break;
                }
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        std::io::copy(&mut requests.by_ref().take(length), &mut std::io::sink())?;
        taken.fetch_add(1, Ordering::Relaxed);
        answers.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n",
        )?;
    }
}
