//! Streams of a real server, made and filled over its text protocol: the program makes none.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::nats::stage::event;

/// The server, where one is named. Otherwise it is said that nothing was tested.
pub(crate) fn address() -> Option<String> {
    static SAID: Once = Once::new();
    let address = env::var("GREENROOM_NATS").ok().filter(|address| !address.is_empty());
    if address.is_none() {
        SAID.call_once(|| {
            // Past the capture of test output.
            let _ = writeln!(
                io::stderr(),
                "NOT RUN: the tests of the program against a NATS server, for want of one. To run \
                 them: scripts/nats up 4333; GREENROOM_NATS=127.0.0.1:4333 cargo test -p \
                 greenroom-cli --features nats --test program nats::"
            );
        });
    }
    address
}

/// A name of a stream that no other run has.
pub(crate) fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{now}-{number}", process::id())
}

/// So many events of so many keys, in turn; `n` counts those of a key.
pub(crate) fn by_key(count: usize, keys: usize) -> Vec<Value> {
    let made = |n: usize| {
        let data = json!({ "n": n / keys });
        event(&format!("e{n}"), "order.placed", &format!("k{}", n % keys), data)
    };
    (0..count).map(made).collect()
}

/// A client that asks one thing after the other.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut client = Self { reader: BufReader::new(stream) };
        client.write(b"CONNECT {\"verbose\":false}\r\nSUB inbox.test 1\r\n");
        client
    }

    fn write(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Asks, and returns the answer.
    pub(crate) fn ask(&mut self, subject: &str, payload: &[u8]) -> Value {
        let inbox = unique("inbox.test");
        let length = payload.len();
        let asks = format!("SUB {inbox} 2\r\nUNSUB 2 1\r\nPUB {subject} {inbox} {length}\r\n");
        // At once: what is sent in parts waits for an answer to the first.
        self.write(&[asks.as_bytes(), payload, b"\r\n"].concat());
        loop {
            let mut line = String::new();
            assert_ne!(self.reader.read_line(&mut line).unwrap(), 0, "the server is gone");
            if line.starts_with("PING") {
                self.write(b"PONG\r\n");
            }
            if line.starts_with("MSG") {
                let length: usize = line.split_whitespace().last().unwrap().parse().unwrap();
                let mut payload = vec![0; length + 2];
                self.reader.read_exact(&mut payload).unwrap();
                return serde_json::from_slice(&payload[..length]).unwrap();
            }
        }
    }

    /// A stream, with all subjects that begin with its name.
    pub(crate) fn make(&mut self, stream: &str) {
        let config =
            json!({ "name": stream, "subjects": [format!("{stream}.>")], "storage": "memory" });
        let config = config.to_string();
        let answer = self.ask(&format!("$JS.API.STREAM.CREATE.{stream}"), config.as_bytes());
        assert!(answer["error"].is_null(), "{answer}");
    }

    /// Publishes events, each to a subject with its own; each is stored before the next.
    pub(crate) fn publish(&mut self, stream: &str, events: &[Value]) {
        for event in events {
            let subject = format!("{stream}.{}.placed", event["subject"].as_str().unwrap());
            let answer = self.ask(&subject, event.to_string().as_bytes());
            assert!(answer["error"].is_null(), "{answer}");
        }
    }

    /// What the server knows of a consumer; null where there is none.
    pub(crate) fn consumer(&mut self, stream: &str, consumer: &str) -> Value {
        let answer = self.ask(&format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}"), b"");
        if answer["error"].is_null() { answer } else { Value::Null }
    }
}

/// A configuration that reads a stream by a consumer, and does the rest.
pub(crate) fn reading(address: &str, (stream, consumer): (&str, &str), rest: &str) -> String {
    let input = input(address, (stream, consumer), "", "");
    format!("inputs:\n  in: {input}\n{rest}\nadmin: {{ listen: 127.0.0.1:0 }}\n")
}

/// An input that reads a stream by a consumer, with more among its own options and beside them.
pub(crate) fn input(
    address: &str,
    (stream, consumer): (&str, &str),
    own: &str,
    beside: &str,
) -> String {
    format!(
        "{{ nats: {{ servers: '{address}', stream: {stream}, consumer: {consumer}, ack_wait: 2s, \
         connect_within: 3s{own} }}{beside} }}"
    )
}

/// An input that reads these events. Nothing where no server is named.
pub(crate) fn filled(name: &str, events: &[Value]) -> Option<String> {
    let address = address()?;
    let (stream, mut client) = (unique(name), Client::connect(&address));
    client.make(&stream);
    client.publish(&stream, events);
    Some(input(&address, (&stream, "reader"), "", ""))
}
