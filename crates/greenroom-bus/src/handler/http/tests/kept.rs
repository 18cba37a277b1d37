//! Connections that the target closes without a word.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    task::JoinSet,
};

use super::{super::*, CARRIES_EVENTS};
use crate::handler::{Effect, FailureKind, Outputs, samples};

/// An answer with one event, and the length of its head.
fn answer() -> (String, usize) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{CARRIES_EVENTS}\r\n");
    (format!("{head}{{}}"), head.len())
}

/// A target whose connections end as it is told.
struct Target {
    url: String,
    /// What it was sent.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Target {
    /// A connection writes these bytes for one request after the other, and is closed behind the
    /// last. `script` gets the number of the connection, from 0.
    async fn start(script: impl Fn(usize) -> Vec<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/in", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = requests.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(go_by(stream, script(number), seen.clone()));
            }
        });
        Self { url, requests }
    }

    fn factory(&self) -> HttpFactory {
        HttpFactory::new(&HttpOptions::new(&self.url)).unwrap()
    }

    fn asked(&self) -> usize {
        self.requests.lock().len()
    }
}

async fn go_by(mut stream: TcpStream, script: Vec<String>, seen: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    for answer in script {
        while !bytes.ends_with(b"\r\n\r\n{}") {
            if stream.read_buf(&mut bytes).await.map_or(0, |read| read) == 0 {
                return;
            }
        }
        seen.lock().push(String::from_utf8(std::mem::take(&mut bytes)).unwrap());
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

async fn post(factory: &HttpFactory) -> HandlerResult {
    let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
    let mut handler = factory.build(0).unwrap();
    samples::settle(handler.handle(&event, &attempt)).await
}

fn counts(result: &HandlerResult) -> bool {
    let failure = result.as_ref().expect_err("it counts");
    assert_eq!(failure.kind, FailureKind::Retry { after: None }, "{failure}");
    failure.effect == Effect::Unknown
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn u01_a_connection_that_dies_at_any_byte_of_an_answer_costs_an_attempt_unless_it_was_kept(
        at in 0..=answer().0.len(),
        answered_before in 1_usize..3,
    ) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (whole, head) = answer();
        runtime.block_on(async {
            let cut = whole[..at].to_owned();
            let new = Target::start({ let cut = cut.clone(); move |_| vec![cut.clone()] }).await;
            let result = post(&new.factory()).await;
            prop_assert_eq!(result.is_ok(), at == whole.len());
            prop_assert!(result.is_ok() || counts(&result));
            prop_assert_eq!(new.asked(), 1, "a new one is not tried again");

            let dies = [vec![whole.clone(); answered_before], vec![cut]].concat();
            let kept = move |number| if number == 0 { dies.clone() } else { vec![whole.clone()] };
            let kept = Target::start(kept).await;
            let factory = kept.factory();
            for _ in 0..answered_before {
                prop_assert!(post(&factory).await.is_ok());
            }
            let result = post(&factory).await;
            let again = at < head;
            prop_assert_eq!(result.is_ok(), again || at == answer().0.len());
            prop_assert!(result.is_ok() || counts(&result));
            prop_assert_eq!(kept.asked(), answered_before + 1 + usize::from(again));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn u01_a_target_that_dies_on_every_connection_is_asked_twice_and_no_more() {
    let (whole, _) = answer();
    let dies =
        move |number| if number == 0 { vec![whole.clone(), "".into()] } else { vec!["".into()] };
    let target = Target::start(dies).await;
    let factory = target.factory();
    assert!(post(&factory).await.is_ok());
    assert!(counts(&post(&factory).await));
    assert_eq!(target.asked(), 3, "over the kept connection, and over a new one");
    assert!(counts(&post(&factory).await));
    assert_eq!(target.asked(), 4, "there is no kept connection any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn u01_a_target_that_closes_behind_every_answer_gets_each_event_in_its_first_attempt() {
    let target =
        Target::start(|_| vec!["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".into()]).await;
    let factory = target.factory();
    let mut posts = JoinSet::new();
    for _ in 0..8 {
        let factory = factory.clone();
        posts.spawn(async move {
            for _ in 0..100 {
                let result = post(&factory).await;
                assert!(matches!(result, Ok(Outputs::None)), "{result:?}");
            }
        });
    }
    posts.join_all().await;
    assert!(
        target.requests.lock().iter().all(|request| request.contains("greenroom-attempt: 1\r\n"))
    );
}
