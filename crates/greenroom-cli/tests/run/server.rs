//! A small HTTP server that answers as it is told.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// One request: headers with lower-case names, and the body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does with a request.
pub(crate) enum Answer {
    /// A status, and headers with a line end each. If they are an event's, it has data.
    Status(u16, &'static str),
    /// The status 200 and these headers, the first half of a body, and the end of the connection.
    Half(&'static str),
    /// No answer for a minute.
    Never,
}

/// A server that lives as long as the test.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request; `answer` gets its number, from 0.
    pub(crate) fn start(
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (seen, answer) = (seen.clone(), answer.clone());
                thread::spawn(move || {
                    let _ = serve(connection, &seen, &*answer);
                });
            }
        });
        Self { url, requests }
    }

    /// As [`start`](Self::start), with TLS, at `localhost`.
    pub(crate) fn start_with_tls(
        answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let chain = CertificateDer::pem_file_iter(certificate("server.pem")).unwrap();
        let chain = chain.map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
        let config = Arc::new(config.with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (seen, answer) = (seen.clone(), answer.clone());
                let tls = ServerConnection::new(config.clone()).unwrap();
                thread::spawn(move || {
                    let _ = serve(StreamOwned::new(tls, connection), &seen, &*answer);
                });
            }
        });
        Self { url, requests }
    }

    /// An address at which nobody listens.
    pub(crate) fn refusing() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/in", listener.local_addr().unwrap())
    }
}

/// A certificate or key of the tests.
pub(crate) fn certificate(name: &str) -> String {
    format!("{}/../greenroom-bus/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn serve(
    connection: impl Read + Write,
    seen: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(usize, &Request) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    while let Some(request) = read(&mut reader)? {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        let writer = reader.get_mut();
        match answer(number, &request) {
            Answer::Status(status, headers) => {
                let body = if headers.contains("ce-id:") { "{}" } else { "" };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} So\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
                );
                writer.write_all(answer.as_bytes())?;
            }
            Answer::Half(headers) => {
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n{headers}\r\nhalf");
                writer.write_all(answer.as_bytes())?;
                return Ok(());
            }
            Answer::Never => thread::sleep(Duration::from_secs(60)),
        }
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let (mut line, mut headers) = (String::new(), Vec::new());
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut request = Request { headers, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    reader.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}
