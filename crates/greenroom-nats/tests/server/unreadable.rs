//! Messages that a server stores and the client cannot read (Z12).

use std::time::Duration;

use async_nats::jetstream::stream::StorageType;
use greenroom_nats::{NatsAuth, NatsInput, NatsUser};

use crate::{
    own_server::Server,
    proxy::Proxy,
    reader::{Read, Reader},
    server::{TestStream, until},
};

/// Long enough that what is lost on its way does not come again within a test.
const LONG: Duration = Duration::from_secs(120);

/// What is lost together with the connection comes again after this time.
const SHORT: Duration = Duration::from_secs(4);

/// They come in order, and the server hears of each.
async fn all_come(stream: &TestStream, options: NatsInput, expected: &[&str]) -> Reader {
    let mut reader = Reader::open(options).await;
    let read = reader.some(expected.len()).await;
    assert_eq!(read.iter().map(|read| read.id.as_str()).collect::<Vec<_>>(), expected);
    read.iter().for_each(Read::done);
    let done = async || stream.consumer("greenroom").await.num_ack_pending == 0;
    until("all is acknowledged", done).await;
    reader
}

#[tokio::test(flavor = "multi_thread")]
async fn z12_a_message_with_a_status_is_a_message() {
    let Some(stream) = TestStream::new("z12_status").await else { return };
    for status in ["503", "409 Consumer Deleted", "100", "404"] {
        let headers = format!("NATS/1.0 {status}");
        stream.publish_raw(b"in", headers.as_bytes(), status).await;
    }
    stream.publish([1], 0).await;
    let options = NatsInput { ack_wait: LONG, ..stream.options() };
    let expected = ["503", "409 Consumer Deleted", "100", "404", "1"];
    all_come(&stream, options, &expected).await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z12_a_message_that_ends_the_connection_is_a_letter_and_the_others_go_on() {
    let Some(stream) = TestStream::new("z12_connection").await else { return };
    stream.publish([0], 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\nno colon", "line").await;
    stream.publish([2], 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\na b: c", "name").await;
    stream.publish_raw(b"in", b"NATS/1.0\r\na: \xff", "value").await;
    stream.publish_raw(b"in", b"HTTP/1.1", "version").await;
    stream.publish_raw(b"\xff", b"NATS/1.0\r\na: b", "subject").await;
    stream.publish_raw("\u{a0}".as_bytes(), b"NATS/1.0\r\na: b", "blank").await;
    stream.publish([8], 0).await;
    let options = NatsInput { ack_wait: SHORT, ..stream.options() };
    let expected = ["0", "line", "2", "name", "value", "version", "subject", "blank", "8"];
    let reader = all_come(&stream, options, &expected).await;
    assert_eq!(reader.probe.stats().reconnects, 1);
    stream.remove().await;
}

/// What another process is done with is told from what was on its way.
#[tokio::test(flavor = "multi_thread")]
async fn z12_what_is_a_letter_is_none_again_after_a_restart() {
    let Some(stream) = TestStream::new("z12_restart").await else { return };
    let options = NatsInput { ack_wait: SHORT, ..stream.options() };
    stream.publish([0], 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\nno colon", "line").await;
    let mut before = Reader::open(options.clone()).await;
    let read = before.some(2).await;
    assert_eq!(read.iter().map(|read| &*read.id).collect::<Vec<_>>(), ["0", "line"]);
    read[1].dead();
    before.close().commit().await.unwrap();

    let (proxy, address) = Proxy::start(&stream.address, "nothing ends it").await;
    let options = NatsInput { ack_wait: SHORT, ..stream.through(&address) };
    let mut reader = Reader::open(options).await;
    proxy.cut();
    until("it is connected again", async || reader.probe.stats().reconnects == 1).await;
    stream.publish([2], 0).await;
    assert_eq!(reader.ids(2).await, ["0", "2"]);
    stream.remove().await;
}

/// The client does not survive these: it is another one that goes on.
#[tokio::test(flavor = "multi_thread")]
async fn z12_a_message_that_the_client_panics_at_is_a_letter_and_the_others_go_on() {
    let Some(stream) = TestStream::new("z12_panics").await else { return };
    stream.publish([0], 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\na: b\rc", "return").await;
    stream.publish([2], 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\na: b\r\r\n c", "folded").await;
    let options = NatsInput { ack_wait: SHORT, ..stream.options() };
    let mut reader = all_come(&stream, options, &["0", "return", "2", "folded"]).await;
    stream.publish([3], 0).await;
    assert_eq!(reader.ids(1).await, ["3"]);
    assert_eq!(reader.probe.stats().reconnects, 1);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_another_client_is_connected_without_end() {
    let Some(stream) = TestStream::new("n05_another_client").await else { return };
    let (proxy, address) = Proxy::start(&stream.address, "nothing ends it").await;
    let connect_within = Duration::from_millis(600);
    let options = NatsInput { ack_wait: SHORT, connect_within, ..stream.through(&address) };
    let mut reader = Reader::open(options).await;
    // More than are tried within that time.
    proxy.refuse(5);
    stream.publish_raw(b"in", b"NATS/1.0\r\na: b\rc", "return").await;
    assert_eq!(reader.ids(1).await, ["return"]);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z12_where_the_stream_may_not_be_asked_the_others_go_on_too() {
    let users = r#"authorization {
        users: [ { user: all, password: p },
                 { user: some, password: p, permissions: { publish: { deny: "$JS.API.STREAM.MSG.GET.>" } } } ]
    }
    no_auth_user: all"#;
    let Some(server) = Server::start_with("z12_denied", users) else { return };
    let stream = TestStream::at(server.address(), StorageType::Memory).await;
    stream.publish([0], 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\nno colon", "line").await;
    stream.publish(2..5, 0).await;
    let auth = Some(NatsAuth::User(NatsUser { name: "some".into(), password: "p".into() }));
    let mut reader = Reader::open(NatsInput { auth, ..stream.options() }).await;
    let read = reader.some(4).await;
    assert_eq!(read.iter().map(|read| &*read.id).collect::<Vec<_>>(), ["0", "2", "3", "4"]);
    assert!(reader.probe.stats().reconnects >= 3);
}

/// As one that a client cannot read is for a reason that is not known here.
#[tokio::test(flavor = "multi_thread")]
async fn z12_what_ends_the_connection_and_is_not_found_does_not_take_the_others_with_it() {
    let Some(stream) = TestStream::new("z12_not_found").await else { return };
    let (_proxy, address) = Proxy::start(&stream.address, "POISON").await;
    stream.publish([0], 0).await;
    stream.publish_bytes("POISON").await;
    stream.publish(2..5, 0).await;
    let mut reader = Reader::open(stream.through(&address)).await;
    let read = reader.some(4).await;
    assert_eq!(read.iter().map(|read| &*read.id).collect::<Vec<_>>(), ["0", "2", "3", "4"]);
    // From then on, it does not hold them up either.
    let probe = reader.probe.clone();
    let losses = || probe.stats().reconnects;
    read.iter().for_each(Read::done);
    let enough = losses() + 4;
    for number in 5.. {
        let before = losses();
        stream.publish([number], 0).await;
        let read = reader.next().await;
        read.done();
        assert_eq!(read.id, number.to_string());
        let meanwhile = losses() - before;
        assert!(meanwhile <= 2, "{number} waited while the connection was lost {meanwhile} times");
        if losses() >= enough {
            break;
        }
    }
    stream.remove().await;
}

/// More than are looked through in the time that is given to it once. What the other process is
/// done with is not known here, so each of them is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn z12_one_among_thousands_that_another_process_has_done_is_found() {
    const DONE: u64 = 6_000;
    let Some(stream) = TestStream::new("z12_thousands").await else { return };
    stream.publish(0..DONE, 0).await;
    stream.publish_raw(b"in", b"NATS/1.0\r\nno colon", "line").await;
    let mut before = Reader::open(stream.options()).await;
    let read = before.some(DONE as usize + 1).await;
    assert_eq!(read[DONE as usize].id, "line");
    // The oldest stays open, and so does that one.
    read[1..DONE as usize].iter().for_each(Read::done);
    before.close().commit().await.unwrap();

    let mut reader = Reader::open(stream.options()).await;
    let read = reader.some(2).await;
    assert_eq!(read.iter().map(|read| &*read.id).collect::<Vec<_>>(), ["0", "line"]);
    stream.remove().await;
}
