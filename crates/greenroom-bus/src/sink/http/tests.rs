//! The sink against a real server that answers as the test says, the hostile ways included.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use greenroom_config::{Secret, table::assert_options};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::*;
use crate::{
    event::Event,
    settlement::{Ack, Settle, Settled},
    sink::{Outgoing, Sink},
};

/// What the server does with a request.
enum Answer {
    /// A status, and headers with a line end each.
    Status(u16, &'static str),
    /// These bytes, and the end of the connection.
    Bytes(String),
    /// Closes the connection with bytes unread, which resets it.
    Reset,
    Never,
}

const OK: Answer = Answer::Status(204, "");

/// A server that remembers its requests, head and body.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// `answer` gets the number of the request, from 0, and its text.
    async fn start(answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in?key=secret", listener.local_addr().unwrap());
        let (requests, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::default());
        let server = Self { url, requests: requests.clone(), connections };
        let (answer, connections) = (Arc::new(answer), server.connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, SeqCst);
                tokio::spawn(serve(stream, answer.clone(), requests.clone()));
            }
        });
        server
    }

    fn config(&self) -> HttpOutput {
        config(&self.url)
    }

    fn ids(&self) -> Vec<String> {
        self.requests.lock().iter().map(|request| header(request, "ce-id").to_owned()).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<impl Fn(usize, &str) -> Answer>,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
        if body.len() < header(&text, "content-length").parse().unwrap_or(0) {
            continue;
        }
        bytes.clear();
        let number = {
            let mut seen = seen.lock();
            seen.push(text.clone());
            seen.len() - 1
        };
        match answer(number, &text) {
            Answer::Status(status, headers) => {
                let text = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n{headers}\r\n");
                let _ = stream.write_all(text.as_bytes()).await;
            }
            Answer::Bytes(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                return;
            }
            Answer::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
            Answer::Never => std::future::pending().await,
        }
    }
}

/// The value of a header; empty where there is none.
fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let head = request.split_once("\r\n\r\n").map_or(request, |(head, _)| head);
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.clone().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

fn config(url: &str) -> HttpOutput {
    HttpOutput {
        timeout: Duration::from_millis(500),
        backoff: Backoff::new(Duration::from_millis(5), Duration::from_millis(20)),
        ..HttpOutput::new(url)
    }
}

/// Paused, it probes with one request after a few milliseconds.
fn open(output: HttpOutput) -> HttpSink {
    HttpSink::begin(
        &output,
        None,
        Backoff::new(Duration::from_millis(5), Duration::from_millis(20)),
    )
    .unwrap()
}

/// Paused, it does not probe by itself.
fn open_patient(output: HttpOutput) -> HttpSink {
    HttpSink::begin(&output, None, Backoff::new(LONG, LONG)).unwrap()
}

/// How the event of this id ended: `None` is a rejection.
type Told = mpsc::UnboundedSender<(String, Result<Settled, String>)>;

struct Tell(String, Told);

impl Settle for Tell {
    fn settled(&self, how: Settled) {
        let _ = self.1.send((self.0.clone(), Ok(how)));
    }

    fn rejected(&self, why: String) -> bool {
        self.1.send((self.0.clone(), Err(why))).is_ok()
    }
}

fn outgoing(id: usize, line: Option<u64>, told: &Told) -> Outgoing {
    let event = Event::builder(id.to_string(), "/test", "t").data_json(&id).build().unwrap();
    let ack = Ack::new(Tell(id.to_string(), told.clone()));
    Outgoing { event, pool: "p".into(), attempt: 1, line, fence: Some(7), ack }
}

/// What became of each event, and the rejections.
#[derive(Debug, Default)]
struct Ends {
    confirmed: Vec<String>,
    refused: Vec<String>,
    rejected: HashMap<String, String>,
}

impl Ends {
    fn of(told: &mut mpsc::UnboundedReceiver<(String, Result<Settled, String>)>) -> Self {
        let mut ends = Self::default();
        while let Ok((id, how)) = told.try_recv() {
            match how {
                Err(why) => drop(ends.rejected.insert(id, why)),
                Ok(_) if ends.rejected.contains_key(&id) => {}
                Ok(how) if how.is_acknowledged() => ends.confirmed.push(id),
                Ok(_) => ends.refused.push(id),
            }
        }
        ends
    }
}

/// Hands over as many events, the n-th in the line that `line` says, and waits until all are
/// settled.
async fn deliver(sink: &HttpSink, count: usize, line: impl Fn(usize) -> Option<u64>) -> Ends {
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..count {
        sink.accept(outgoing(id, line(id), &told)).await;
    }
    let done = tokio::time::timeout(Duration::from_secs(20), sink.finish()).await;
    done.expect("it ends").unwrap();
    Ends::of(&mut telling)
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn b06_an_event_is_confirmed_on_2xx_and_its_key_is_that_of_source_and_id() {
    let server = Server::start(|_, _| OK).await;
    let sink = open(server.config());
    let ends = deliver(&sink, 3, |_| None).await;
    assert_eq!((ends.confirmed.len(), server.requests.lock().len()), (3, 3));
    let requests = server.requests.lock();
    let request = requests.iter().find(|request| header(request, "ce-id") == "1").unwrap();
    assert_eq!(header(request, "idempotency-key"), "/test 1");
    assert_eq!(header(request, "greenroom-attempt"), "1");
    assert_eq!(header(request, "greenroom-fence"), "7");
    assert_eq!(header(request, "content-type"), "application/json");
    assert!(request.ends_with("\r\n\r\n1") && !format!("{:?}", sink.describe()).contains("secret"));
}

#[tokio::test]
async fn b06_structured_and_batch_mode() {
    let server = Server::start(|_, _| OK).await;
    let mode = HttpOutputMode::Structured;
    deliver(&open(HttpOutput { mode, ..server.config() }), 1, |_| None).await;
    let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 4, ..Batching::default() });
    let sink = open(HttpOutput { mode, batch, concurrency: 1, ..server.config() });
    assert_eq!(deliver(&sink, 10, |_| Some(1)).await.confirmed, numbers(10));
    let requests = server.requests.lock();
    assert_eq!(header(&requests[0], "content-type"), "application/cloudevents+json");
    let batches = requests[1..].iter().map(|request| {
        assert_eq!(header(request, "content-type"), "application/cloudevents-batch+json");
        assert_eq!(header(request, "idempotency-key"), "");
        let body = request.split_once("\r\n\r\n").unwrap().1;
        Event::parse_batch(body.as_bytes()).unwrap()
    });
    let sizes: Vec<_> = batches.clone().map(|batch| batch.len()).collect();
    assert!(sizes.iter().all(|size| *size <= 4) && sizes.len() <= 4, "{sizes:?}");
    let ids: Vec<_> = batches.flatten().map(|event| event.id().to_owned()).collect();
    assert_eq!(ids, numbers(10));
}

#[tokio::test]
async fn b06_events_of_a_line_arrive_in_order_through_retries() {
    // Every fifth request fails, whichever event it is of.
    let server = Server::start(|number, _| match number % 5 {
        0 => Answer::Status(503, ""),
        3 if number % 2 == 0 => Answer::Reset,
        _ => OK,
    });
    let server = server.await;
    let sink = open(server.config());
    let ends = deliver(&sink, 60, |id| Some(id as u64 % 4)).await;
    assert_eq!((ends.confirmed.len(), ends.refused.len()), (60, 0), "{ends:?}");
    let mut last = HashMap::new();
    for id in server.ids() {
        let id: usize = id.parse().unwrap();
        let before = last.insert(id % 4, id);
        assert!(before.is_none_or(|before| before <= id), "{id} after {before:?}");
    }
    assert!(sink.trouble().is_none());
}

#[tokio::test]
async fn b06_a_target_that_closes_behind_every_answer_gets_each_event_in_its_first_attempt() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(|_, _| Answer::Bytes(answer.to_owned())).await;
    let sink = open(HttpOutput { concurrency: 8, ..server.config() });
    let ends = deliver(&sink, 400, |id| Some(id as u64 % 16)).await;
    assert_eq!((ends.confirmed.len(), sink.unanswered()), (400, 0), "{ends:?}");
    let requests = server.requests.lock();
    assert!(requests.iter().all(|request| header(request, "greenroom-attempt") == "1"));
}

#[tokio::test]
async fn b06_with_a_concurrency_of_one_all_events_arrive_as_they_were_accepted() {
    let server =
        Server::start(|number, _| if number % 3 == 1 { Answer::Status(500, "") } else { OK });
    let server = server.await;
    let config = HttpOutput { concurrency: 1, ..server.config() };
    deliver(&open(config), 20, |_| None).await;
    let mut ids = server.ids();
    ids.dedup();
    assert_eq!(ids, numbers(20));
}

#[tokio::test]
async fn b06_requests_are_under_way_together_and_share_few_connections() {
    let server = Server::start(|_, _| OK).await;
    let config = HttpOutput { concurrency: 4, ..server.config() };
    deliver(&open(config), 100, |_| None).await;
    // Each has one request at a time.
    let connections = server.connections.load(SeqCst);
    assert!((2..=4).contains(&connections), "{connections}: one pool for the output");
}

#[tokio::test]
async fn d13_a_rejection_names_the_answer_and_the_others_are_stored() {
    let server = Server::start(|_, request| match header(request, "ce-id") {
        "1" => Answer::Bytes("HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nhuge".into()),
        "2" => Answer::Status(302, "location: http://127.0.0.1:1/\r\n"),
        "3" => Answer::Status(200, "greenroom-outcome: park\r\n"),
        "4" => Answer::Status(200, "greenroom-outcome: reject\r\n"),
        _ => OK,
    });
    let server = server.await;
    let ends = deliver(&open(server.config()), 6, |_| Some(1)).await;
    assert_eq!(ends.confirmed, ["0", "5"]);
    let mut rejected: Vec<_> = ends.rejected.keys().cloned().collect();
    rejected.sort_unstable();
    assert_eq!(
        (rejected, ends.refused.len()),
        (vec!["1".into(), "2".into(), "3".into(), "4".into()], 0)
    );
    let why = &ends.rejected["1"];
    assert!(why.starts_with("http: 413") && why.ends_with("/in: huge"), "{why}");
    assert_eq!(server.requests.lock().len(), 6, "no redirect is followed, nothing is sent twice");
}

#[tokio::test]
async fn d13_a_batch_that_is_rejected_is_sent_one_by_one() {
    let server =
        Server::start(
            |_, request| {
                if request.contains("\"id\":\"2\"") { Answer::Status(422, "") } else { OK }
            },
        );
    let server = server.await;
    let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 5, ..Batching::default() });
    let sink = open(HttpOutput { mode, batch, ..server.config() });
    let ends = deliver(&sink, 5, |_| Some(1)).await;
    assert_eq!(ends.confirmed, ["0", "1", "3", "4"]);
    assert!(ends.rejected["2"].contains("422"), "{ends:?}");
}

#[tokio::test]
async fn d13_what_fails_for_now_is_tried_again_however_it_fails() {
    let half = "HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nhalf";
    let huge = format!("HTTP/1.1 503 No\r\ncontent-length: 9000000\r\n\r\n{}", "x".repeat(900_000));
    let server = Server::start(move |number, _| match number {
        0 => Answer::Never,
        1 => Answer::Reset,
        2 => Answer::Bytes(half.to_owned()),
        3 => Answer::Bytes("HTTP/1.1 20".to_owned()),
        4 => Answer::Bytes("not HTTP at all\r\n\r\n".to_owned()),
        5 => Answer::Bytes(huge.clone()),
        6 => Answer::Status(408, ""),
        7 => Answer::Status(200, "greenroom-outcome: retry\r\n"),
        8 => Answer::Bytes("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_owned()),
        _ => OK,
    });
    let server = server.await;
    let sink = open(server.config());
    let ends = deliver(&sink, 1, |_| None).await;
    assert_eq!((ends.confirmed.len(), server.requests.lock().len()), (1, 9), "{ends:?}");
    let requests = server.requests.lock();
    assert!(requests.iter().all(|request| header(request, "idempotency-key") == "/test 0"));
    assert_eq!(header(&requests[8], "greenroom-attempt"), "9");
    assert_eq!(sink.unanswered(), 4, "no answer, a reset, and two halves of a head");
}

#[tokio::test]
async fn d13_retry_after_holds_all_requests() {
    let server = Server::start(|number, _| match number {
        0 => Answer::Status(429, "retry-after: 1\r\n"),
        _ => OK,
    });
    let server = server.await;
    let config = HttpOutput { concurrency: 1, ..server.config() };
    let started = std::time::Instant::now();
    let sink = open(config);
    assert_eq!(deliver(&sink, 3, |_| None).await.confirmed, numbers(3));
    assert!(started.elapsed() >= Duration::from_secs(1));
}

async fn until(is: impl Fn() -> bool) {
    let wait = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("it comes to that");
}

const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn d13_a_refused_credential_pauses_and_rejects_nothing() {
    let mended = Arc::new(AtomicUsize::new(0));
    let answers = mended.clone();
    let server = Server::start(move |_, _| match answers.load(SeqCst) {
        0 => Answer::Status(401, ""),
        _ => OK,
    });
    let server = server.await;
    let sink = open_patient(server.config());
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..20 {
        sink.accept(outgoing(id, Some(1), &told)).await;
    }
    until(|| sink.trouble().is_some_and(|trouble| trouble.paused)).await;
    let error = sink.trouble().unwrap().error;
    assert!(error.contains("401") && error.contains("check `auth`, `headers`"), "{error}");
    assert!(sink.resume(), "it probes, and is refused again");
    until(|| server.requests.lock().len() == 2).await;
    until(|| sink.trouble().is_some_and(|trouble| trouble.paused)).await;
    mended.store(1, SeqCst);
    until(|| sink.resume() || sink.trouble().is_none()).await;
    tokio::time::timeout(Duration::from_secs(10), sink.finish()).await.unwrap().unwrap();
    let ends = Ends::of(&mut telling);
    assert_eq!((ends.confirmed, ends.rejected.len()), (numbers(20), 0));
    assert!(sink.trouble().is_none() && !sink.resume());
}

#[tokio::test]
async fn d13_an_event_that_cannot_be_written_does_not_open_a_sink_that_is_paused() {
    let server = Server::start(|_, _| Answer::Status(401, "")).await;
    let sink = open_patient(server.config());
    let (told, mut telling) = mpsc::unbounded_channel();
    sink.accept(outgoing(0, None, &told)).await;
    until(|| sink.trouble().is_some_and(|trouble| trouble.paused)).await;
    let huge = (0..5_000).map(|n| (format!("x{n}"), "y"));
    let event = Event::builder("1", "/test", "t");
    let event = huge.fold(event, |event, (name, text)| event.extension(&name, text));
    let event = event.build().unwrap();
    sink.accept(Outgoing { event, ..outgoing(1, None, &told) }).await;
    // The one that was refused is first in line, and is refused again.
    let probes = async {
        loop {
            sink.resume();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let (id, how) = tokio::select! {
        told = telling.recv() => told.unwrap(),
        _ = tokio::time::timeout(Duration::from_secs(10), probes) => panic!("it waits"),
    };
    assert!(id == "1" && how.unwrap_err().contains("use `mode: structured`"));
    assert!(sink.trouble().is_some_and(|trouble| trouble.paused));
}

#[tokio::test]
async fn d13_a_paused_sink_probes_with_one_request_at_a_time() {
    let server = Server::start(|number, _| match number {
        0..9 => Answer::Status(403, ""),
        _ => OK,
    });
    let server = server.await;
    let sink = open_patient(server.config());
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..30 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    // So many are under way when the first is refused.
    until(|| server.requests.lock().len() == 8).await;
    until(|| sink.resume()).await;
    until(|| server.requests.lock().len() == 9).await;
    assert!(sink.trouble().is_some_and(|trouble| trouble.paused));
    assert_eq!(server.requests.lock().len(), 9, "one probes, the others wait");
    until(|| sink.resume() && sink.trouble().is_none() || server.requests.lock().len() > 9).await;
    tokio::time::timeout(Duration::from_secs(10), sink.finish()).await.unwrap().unwrap();
    let ends = Ends::of(&mut telling);
    assert_eq!((ends.confirmed.len(), ends.rejected.len()), (30, 0));
    assert_eq!(server.requests.lock().len(), 39);
}

#[tokio::test]
async fn d13_a_paused_sink_probes_by_itself() {
    let server = Server::start(|number, _| if number < 4 { Answer::Status(401, "") } else { OK });
    let server = server.await;
    let sink = open(HttpOutput { concurrency: 1, ..server.config() });
    assert_eq!(deliver(&sink, 3, |_| None).await.confirmed, numbers(3));
    assert_eq!(server.requests.lock().len(), 7);
}

#[tokio::test]
async fn d13_a_reload_of_its_options_corrects_a_paused_sink() {
    let server = Server::start(|_, request| match header(request, "x-key") {
        "right" => OK,
        _ => Answer::Status(403, ""),
    });
    let server = server.await;
    let wrong = server.config();
    let sink = open_patient(wrong.clone());
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..5 {
        sink.accept(outgoing(id, Some(1), &told)).await;
    }
    until(|| sink.trouble().is_some()).await;
    let mut right = wrong.clone();
    right.headers.push(("x-key".to_owned(), "right".to_owned()));
    assert!(!sink.reconfigure(&wrong).unwrap(), "it is the same");
    assert!(sink.reconfigure(&right).unwrap());
    tokio::time::timeout(Duration::from_secs(10), sink.finish()).await.unwrap().unwrap();
    assert_eq!(Ends::of(&mut telling).confirmed, numbers(5));
}

#[tokio::test]
async fn b06_a_row_of_the_status_map_decides() {
    let server = Server::start(|number, _| Answer::Status([409, 404, 200][number.min(2)], ""));
    let server = server.await;
    let rows = [("409", "settle"), ("404", "retry")];
    let status = rows.map(|(on, verdict)| (on.to_owned(), verdict.to_owned())).to_vec();
    let sink = open(HttpOutput { status, concurrency: 1, ..server.config() });
    assert_eq!(deliver(&sink, 2, |_| None).await.confirmed, numbers(2));
    assert_eq!(server.requests.lock().len(), 3);
}

#[tokio::test]
async fn b06_what_is_accepted_is_bounded_in_count_and_bytes() {
    let server = Server::start(|_, _| Answer::Never).await;
    let sink = open(HttpOutput { ..server.config() });
    let (told, _telling) = mpsc::unbounded_channel();
    let mut accepted = 0;
    while sink.try_accept(outgoing(accepted, None, &told)).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 1_024);
    let sink = open(server.config());
    let large = |bytes: usize| {
        let event = Event::builder("1", "s", "t").data_json(&"x".repeat(bytes)).build().unwrap();
        Outgoing { event, ..outgoing(0, None, &told) }
    };
    for _ in 0..3 {
        assert!(sink.try_accept(large(4 << 20)).is_ok());
    }
    assert!(sink.try_accept(large(6 << 20)).is_err(), "given back");
    let alone = open(server.config());
    assert!(alone.try_accept(large(40 << 20)).is_ok(), "larger than all room, it passes alone");
    assert!(alone.try_accept(outgoing(1, None, &told)).is_err());
}

#[tokio::test]
async fn b06_dropped_it_refuses_what_is_not_settled() {
    let server = Server::start(|_, _| Answer::Never).await;
    let sink = open(server.config());
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..20 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    until(|| server.requests.lock().len() == 8).await;
    drop((sink, told));
    let mut refused = 0;
    while let Some((_, how)) = telling.recv().await {
        assert!(!how.unwrap().is_acknowledged());
        refused += 1;
    }
    assert_eq!(refused, 20);
}

#[tokio::test]
async fn b06_settings_that_cannot_work_are_refused() {
    let error = |output| HttpSink::open(&output).map(drop).unwrap_err().to_string();
    assert!(error(HttpOutput::new("nowhere")).contains("`url` cannot be read"));
    let none = HttpOutput { concurrency: 0, ..HttpOutput::new("http://localhost/") };
    assert!(error(none).contains("`concurrency` is 0"));
    for name in ["ce-id", "Content-Type", "idempotency-key", "host"] {
        let headers = Secret(vec![(name.to_owned(), "secret".to_owned())]);
        let refused = error(HttpOutput { headers, ..HttpOutput::new("http://localhost/") });
        assert!(refused.contains("is written by greenroom itself"), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
}

#[tokio::test]
async fn d13_a_refused_credential_says_that_it_was_refused() {
    let server = Server::start(|_, _| Answer::Status(401, "")).await;
    let mut config = server.config();
    config.auth = Some(crate::http::Auth::Bearer("hunter2".into()));
    let sink = open_patient(config);
    let (told, _telling) = mpsc::unbounded_channel();
    sink.accept(outgoing(0, None, &told)).await;
    until(|| sink.trouble().is_some()).await;
    let trouble = sink.trouble().unwrap();
    assert!(
        trouble.paused && trouble.error.contains("the credentials were refused"),
        "{trouble:?}"
    );
    assert!(!trouble.error.contains("hunter2"), "{trouble:?}");
}

/// How many events are confirmed once that is `count` of them.
async fn confirmed(
    telling: &mut mpsc::UnboundedReceiver<(String, Result<Settled, String>)>,
    count: usize,
) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let told = tokio::time::timeout(Duration::from_secs(10), telling.recv()).await;
        let (id, how) = told.expect("it comes to that").unwrap();
        assert!(how.unwrap().is_acknowledged(), "{id}");
        ids.push(id);
    }
    ids.sort_by_key(|id| id.parse::<usize>().unwrap());
    ids
}

/// Sent again after an hour.
fn patient(config: HttpOutput) -> HttpOutput {
    HttpOutput { backoff: Backoff::new(LONG, LONG), ..config }
}

#[tokio::test]
async fn d13_events_that_fail_for_now_hold_up_only_those_of_their_lines() {
    let server = Server::start(|_, request| match header(request, "ce-id").parse::<usize>() {
        Ok(0..20) => Answer::Status(500, ""),
        _ => OK,
    });
    let server = server.await;
    let sink = open(patient(server.config()));
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..60 {
        // The last ones stand behind those that fail.
        sink.accept(outgoing(id, Some(id as u64 % 40), &told)).await;
    }
    let others: Vec<_> = (20..40).map(|id: usize| id.to_string()).collect();
    assert_eq!(confirmed(&mut telling, 20).await, others);
    until(|| server.requests.lock().len() == 40).await;
    until(|| sink.trouble().is_some_and(|trouble| !trouble.paused)).await;
    drop((sink, told));
    let mut refused = 0;
    while let Some((_, how)) = telling.recv().await {
        assert!(!how.unwrap().is_acknowledged());
        refused += 1;
    }
    assert_eq!(refused, 40, "what waits for its next attempt, and what waits behind it");
}

#[tokio::test]
async fn d13_one_event_that_fails_for_now_does_not_hold_up_its_batch() {
    let mended = Arc::new(AtomicUsize::new(0));
    let fails = mended.clone();
    let server = Server::start(move |_, request| {
        let is_broken = fails.load(SeqCst) == 0 && request.contains("\"id\":\"2\"");
        if is_broken { Answer::Status(500, "") } else { OK }
    });
    let server = server.await;
    let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 5, ..Batching::default() });
    let sink = open(HttpOutput { mode, batch, ..server.config() });
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..5 {
        // The last of them stands behind the one that fails.
        sink.accept(outgoing(id, Some(if id == 4 { 2 } else { id as u64 }), &told)).await;
    }
    assert_eq!(confirmed(&mut telling, 3).await, ["0", "1", "3"]);
    let whole = |request: &String| (0..5).all(|id| request.contains(&format!("\"id\":\"{id}\"")));
    assert_eq!(server.requests.lock().iter().filter(|request| whole(request)).count(), 3);
    mended.store(1, SeqCst);
    tokio::time::timeout(Duration::from_secs(10), sink.finish()).await.unwrap().unwrap();
    assert_eq!(Ends::of(&mut telling).confirmed, ["2", "4"]);
    assert!(sink.trouble().is_none());
}

#[tokio::test]
async fn d13_a_batch_stays_whole_while_its_target_is_down_behind_a_gateway() {
    for status in [502, 503, 504] {
        let server = Server::start(move |number, _| match number {
            0..8 => Answer::Status(status, ""),
            _ => OK,
        });
        let server = server.await;
        let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 4, ..Batching::default() });
        let sink = open(HttpOutput { mode, batch, ..server.config() });
        let ends = deliver(&sink, 4, |_| None).await;
        assert_eq!(ends.confirmed.len(), 4, "{ends:?}");
        let sizes: Vec<_> = server.requests.lock().iter().map(|it| events_in(it)).collect();
        assert_eq!(sizes, [4; 9], "{status}");
    }
}

#[tokio::test]
async fn d13_an_event_of_which_a_target_behind_a_gateway_fails_comes_to_be_alone() {
    let server = Server::start(|_, request| match request.contains("\"id\":\"2\"") {
        true => Answer::Status(502, ""),
        false => OK,
    });
    let server = server.await;
    let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 4, ..Batching::default() });
    let sink = open(HttpOutput { mode, batch, ..server.config() });
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..4 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    assert_eq!(confirmed(&mut telling, 3).await, ["0", "1", "3"]);
    let whole = |request: &&String| events_in(request) == 4;
    assert_eq!(server.requests.lock().iter().filter(whole).count(), 10);
    // Others are settled now: so it is not the target.
    for id in 4..8 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    assert_eq!(confirmed(&mut telling, 4).await, ["4", "5", "6", "7"]);
}

#[tokio::test]
async fn d13_a_batch_that_fails_behind_a_gateway_is_split_early_where_others_are_settled() {
    let server = Server::start(|_, request| match request.contains("\"id\":\"2\"") {
        true => Answer::Status(502, ""),
        false => OK,
    });
    let server = server.await;
    let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 4, ..Batching::default() });
    let mut config = HttpOutput { mode, batch, ..patient(server.config()) };
    let sink = open(config.clone());
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..4 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    for failures in 1..=3 {
        until(|| sink.unanswered() == 4 * failures).await;
        sink.accept(outgoing(4, None, &told)).await;
        assert_eq!(confirmed(&mut telling, 1).await, ["4"]);
        // Other options, so that it is sent again now and not in an hour.
        config.timeout += Duration::from_millis(1);
        assert!(sink.reconfigure(&config).unwrap());
    }
    assert_eq!(confirmed(&mut telling, 2).await, ["0", "1"]);
    let whole = |request: &&String| events_in(request) == 4;
    assert_eq!(server.requests.lock().iter().filter(whole).count(), 3);
}

fn events_in(request: &str) -> usize {
    request.matches("specversion").count()
}

#[tokio::test]
async fn b06_events_of_a_line_arrive_in_order_though_their_batches_are_split() {
    // What the target takes: each second request fails or is rejected, but for single events.
    let server = Server::start(|number, request| {
        let is_single = request.matches("specversion").count() == 1;
        match number % 4 {
            0 if !is_single => Answer::Status(422, ""),
            2 => Answer::Status(500, ""),
            _ => OK,
        }
    });
    let server = server.await;
    for concurrency in [1, 4] {
        server.requests.lock().clear();
        let (mode, batch) = (HttpOutputMode::Batch, Batching { events: 9, ..Batching::default() });
        let config = HttpOutput { mode, batch, concurrency, ..server.config() };
        let sink = open(config);
        let ends = deliver(&sink, 200, |id| Some(id as u64 % 7)).await;
        assert_eq!((ends.confirmed.len(), ends.refused.len()), (200, 0), "{ends:?}");
        let mut last = HashMap::new();
        for id in ends.confirmed {
            let id: usize = id.parse().unwrap();
            let line = if concurrency == 1 { 0 } else { id % 7 };
            let before = last.insert(line, id);
            assert!(before.is_none_or(|before| before < id), "{id} after {before:?}");
        }
    }
}

#[tokio::test]
async fn d13_a_reload_ends_a_wait_that_the_target_before_it_has_named() {
    let before = Server::start(|_, _| Answer::Status(503, "retry-after: 300\r\n")).await;
    let after = Server::start(|_, _| OK).await;
    let sink = open(patient(before.config()));
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..20 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    until(|| sink.trouble().is_some()).await;
    assert!(sink.reconfigure(&after.config()).unwrap());
    assert_eq!(confirmed(&mut telling, 20).await, numbers(20));
    assert!(sink.trouble().is_none());
}

#[tokio::test]
async fn d13_what_is_said_to_a_configuration_that_is_replaced_holds_up_nothing() {
    for status in [503, 401] {
        let after = Server::start(|_, _| OK).await;
        let sink = Arc::new(std::sync::OnceLock::<HttpSink>::new());
        let (reloaded, config) = (sink.clone(), config(&after.url));
        let before = Server::start(move |_, _| {
            // While the request is under way.
            reloaded.get().unwrap().reconfigure(&patient(config.clone())).unwrap();
            Answer::Status(status, "retry-after: 300\r\n")
        });
        let before = before.await;
        let opened = open_patient(patient(before.config()));
        let sink = sink.get_or_init(|| opened);
        let (told, mut telling) = mpsc::unbounded_channel();
        sink.accept(outgoing(0, None, &told)).await;
        assert_eq!(confirmed(&mut telling, 1).await, ["0"], "{status}");
    }
}

#[tokio::test]
async fn d13_what_is_said_to_a_configuration_that_is_replaced_does_not_end_a_pause() {
    let after = Server::start(|_, _| Answer::Status(401, "")).await;
    let sink = Arc::new(std::sync::OnceLock::<HttpSink>::new());
    let (reloaded, config) = (sink.clone(), config(&after.url));
    let before = Server::start(move |number, _| match number {
        0 => Answer::Never,
        _ => {
            reloaded.get().unwrap().reconfigure(&config).unwrap();
            Answer::Status(503, "")
        }
    });
    let before = before.await;
    let opened = open_patient(before.config());
    let sink = sink.get_or_init(|| opened);
    let (told, _telling) = mpsc::unbounded_channel();
    for id in 0..2 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    until(|| sink.trouble().is_some_and(|trouble| trouble.paused)).await;
    until(|| sink.unanswered() == 1).await;
    assert!(sink.trouble().is_some_and(|trouble| trouble.paused));
    assert_eq!(after.requests.lock().len(), 1, "the one without an answer waits for the probe");
}

#[tokio::test]
async fn d13_once_one_event_is_taken_again_the_others_do_not_wait_on() {
    let seen = Mutex::new(std::collections::HashSet::new());
    let server = Server::start(move |_, request| {
        let id = header(request, "ce-id");
        match (seen.lock().insert(id.to_owned()), id) {
            (true, "7") => Answer::Status(503, "retry-after: 1\r\n"),
            (true, _) => Answer::Status(500, ""),
            _ => OK,
        }
    });
    let server = server.await;
    let sink = open(patient(server.config()));
    let (told, mut telling) = mpsc::unbounded_channel();
    for id in 0..7 {
        sink.accept(outgoing(id, None, &told)).await;
    }
    until(|| server.requests.lock().len() == 7).await;
    sink.accept(outgoing(7, None, &told)).await;
    assert_eq!(confirmed(&mut telling, 8).await, numbers(8));
}

#[tokio::test]
async fn d13_a_retry_after_of_nothing_leaves_the_backoff() {
    let server = Server::start(|number, _| match number {
        0 => Answer::Status(503, "retry-after: 0\r\n"),
        1 => Answer::Status(503, "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        _ => OK,
    });
    let server = server.await;
    let wait = Duration::from_millis(200);
    let backoff = Backoff::new(wait, wait);
    let sink = open(HttpOutput { backoff, ..server.config() });
    let started = std::time::Instant::now();
    assert_eq!(deliver(&sink, 1, |_| None).await.confirmed, numbers(1));
    // Of each, up to half is taken off.
    assert!(started.elapsed() >= wait);
}

#[test]
fn c02_each_option_takes_what_it_should_and_refuses_the_rest() {
    assert_options::<HttpOutput>(
        &[("url", "'https://a'")],
        &[
            ("url", "'http://a/b'", &["'ftp://a'", "5"]),
            ("headers", "{ x-key: b }", &["{ ce-id: x }"]),
            ("auth", "{ bearer: a }", &["{ bearer: 'a b' }"]),
            ("tls", "{}", &["{ cert: x }"]),
            ("mode", "structured", &["text"]),
            ("mode", "batch, batch: { events: 5, within: 0s }", &["batch, batch: { events: 0 }"]),
            ("batch", "{ events: 5 }, mode: batch", &["{ events: 5 }"]),
            ("concurrency", "1", &["0", "1025"]),
            ("timeout", "1s", &["0s"]),
            ("backoff", "1ms..1s", &["1s..1ms", "5"]),
            ("status", "{ 404: retry }", &["{ 404: stop }"]),
        ],
    );
}
