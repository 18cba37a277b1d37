//! Several events in flight to one process, from as many workers.

use super::*;

/// Workers that share processes.
struct Workers {
    factory: ExecFactory,
    handlers: Vec<Box<dyn Handler>>,
}

impl Workers {
    fn new(count: usize, in_flight: usize, config: ExecConfig) -> Self {
        let factory = ExecFactory::new(ExecConfig { in_flight, ..config }).unwrap();
        let handlers = (0..count).map(|worker| factory.build(worker).unwrap()).collect();
        Self { factory, handlers }
    }

    /// As many of one process as there may be, which has answered an event `good`.
    async fn proven(count: usize, config: ExecConfig) -> Self {
        let mut workers = Self::new(count, count, config);
        assert!(workers.one(0, "good").await.is_ok());
        workers
    }

    async fn one(&mut self, worker: usize, id: &str) -> HandlerResult {
        handle(&mut self.handlers[worker], id).await
    }

    /// One event for each worker, all at once.
    async fn all(&mut self, ids: &[&'static str]) -> Vec<HandlerResult> {
        assert_eq!(ids.len(), self.handlers.len());
        let begin = |(mut handler, id): (Box<dyn Handler>, &'static str)| {
            tokio::spawn(async move {
                let result = handle(&mut handler, id).await;
                (handler, result)
            })
        };
        let pairs = self.handlers.drain(..).zip(ids.iter().copied());
        let tasks: Vec<_> = pairs.map(begin).collect();
        let mut results = Vec::new();
        for task in tasks {
            let (handler, result) = task.await.unwrap();
            self.handlers.push(handler);
            results.push(result);
        }
        results
    }

    fn counts(&self) -> (u64, u64, u64) {
        (self.factory.restarts(), self.factory.crashes(), self.factory.recycles())
    }
}

async fn handle(handler: &mut Box<dyn Handler>, id: &str) -> HandlerResult {
    let (event, attempt) = (samples::event(id, "{\"n\":1}"), samples::attempt());
    samples::settle(handler.handle(&event, &attempt)).await
}

/// What became of each: `ok`, or the kind of its failure.
fn outcomes(results: &[HandlerResult]) -> Vec<String> {
    let outcome = |result: &HandlerResult| match result {
        Ok(_) => "ok".to_owned(),
        Err(failure) => format!("{:?}", failure.kind),
    };
    results.iter().map(outcome).collect()
}

/// A Python worker, which reads ahead as much as its pipe holds; `answer` is run for each event
/// with its id in `id`, and may call `reply`.
fn python(answer: &str) -> ExecConfig {
    let script = format!(
        r#"
import json, os, sys, time
def reply(outcome="pass", **more):
    print(json.dumps(dict(token=token, outcome=outcome, **more)), flush=True)
handled = 0
for line in sys.stdin:
    job = json.loads(line)
    token, id = job["token"], job["event"]["id"]
    handled += 1
    {answer}
"#
    );
    program(&["python3", "-c", &script])
}

#[tokio::test]
async fn u02_as_many_workers_share_a_process_as_may_be_in_flight() {
    let mut workers = Workers::new(5, 2, python(r#"reply("reject", error=str(os.getpid()))"#));
    let results = workers.all(&["a", "b", "c", "d", "e"]).await;
    let pids: Vec<&str> =
        results.iter().map(|result| result.as_ref().unwrap_err().error.as_str()).collect();
    assert!(pids[0] == pids[1] && pids[2] == pids[3], "{pids:?}");
    let mut processes = pids.clone();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 3, "{pids:?}");
}

#[tokio::test]
async fn u02_a_process_may_answer_those_in_flight_in_any_order() {
    // It answers none before it has read all three, the last one first.
    let script = r#"
jobs = globals().setdefault("jobs", [])
    jobs.append(token)
    if len(jobs) == 3:
        for token in reversed(jobs): reply("reject", error=token)
        jobs.clear()"#;
    let mut workers = Workers::new(3, 3, python(script.trim_start()));
    for round in 0..3 {
        let results = workers.all(&["a", "b", "c"]).await;
        let mut tokens: Vec<&str> =
            results.iter().map(|result| result.as_ref().unwrap_err().error.as_str()).collect();
        tokens.dedup();
        assert_eq!(tokens.len(), 3, "round {round}: {tokens:?}");
    }
    assert_eq!(workers.counts(), (0, 0, 0));
}

#[tokio::test]
async fn u05_no_more_are_in_flight_than_may_be() {
    let dir = TempDir::new().unwrap();
    let wait = r#"
print(id, file=open(os.environ["DIR"] + "/read", "a"), flush=True)
    while not os.path.exists(os.environ["DIR"] + "/go"): time.sleep(0.001)
    reply()"#;
    // The first worker's process is shared by two: the events of the others go elsewhere.
    let mut workers = Workers::new(2, 2, with_dir(python(wait.trim_start()), &dir));
    let mut third = workers.factory.build(0).unwrap();
    let go = async {
        until(|| dir.path().join("read").exists()).await;
        fs::write(dir.path().join("go"), "").unwrap();
    };
    let (results, last, ()) = tokio::join!(workers.all(&["a", "b"]), handle(&mut third, "c"), go);
    assert_eq!((outcomes(&results), last.is_ok()), (vec!["ok".into(), "ok".into()], true));
    assert_eq!(workers.counts(), (0, 0, 0));
}

#[tokio::test]
async fn p18_of_several_in_flight_the_one_that_kills_its_process_is_found() {
    let kills = r#"
if id == "poison": os._exit(3)
    reply()"#;
    let shell = shell(r#"case $line in *'"id":"poison"'*) exit 3;; esac; reply pass"#);
    for config in [python(kills.trim_start()), shell] {
        for place in 0..4 {
            let mut workers = Workers::proven(4, config.clone()).await;
            let mut ids = ["a", "b", "c", "d"];
            ids[place] = "poison";
            let results = workers.all(&ids).await;
            let mut expected = ["ok"; 4];
            expected[place] = "Crash";
            assert_eq!(outcomes(&results), expected);
            let words = &results[place].as_ref().unwrap_err().error;
            assert!(words.contains("twice in a row with this event in hand"), "{words}");
            let (_, crashes, recycles) = workers.counts();
            assert_eq!((crashes, recycles), (2, 0), "once among others, and once alone");
        }
    }
}

#[tokio::test]
async fn p18_two_that_kill_their_process_are_both_found() {
    let kills = r#"
if id.startswith("poison"): os._exit(3)
    reply()"#;
    let restart = RestartLimit { max: 10, ..RestartLimit::default() };
    let config = ExecConfig { restart, ..python(kills.trim_start()) };
    let mut workers = Workers::proven(4, config).await;
    let results = workers.all(&["a", "poison-1", "b", "poison-2"]).await;
    assert_eq!(outcomes(&results), ["ok", "Crash", "ok", "Crash"]);
}

#[tokio::test]
async fn u02_at_a_timeout_the_others_in_flight_are_blamed_for_nothing() {
    let slow = r#"
if id == "slow": time.sleep(60)
    reply()"#;
    let config = ExecConfig { timeout: SHORT, ..python(slow.trim_start()) };
    let mut workers = Workers::proven(4, config).await;
    let results = workers.all(&["a", "slow", "b", "c"]).await;
    assert_eq!(outcomes(&results), ["ok", "Timeout", "ok", "ok"]);
    assert_eq!(workers.counts(), (1, 0, 0));
}

#[tokio::test]
async fn u02_the_time_of_an_event_begins_when_those_before_it_are_answered() {
    let works = "time.sleep(0.5); reply()";
    let config = ExecConfig { timeout: Duration::from_secs(2), ..python(works) };
    let mut workers = Workers::proven(6, config).await;
    let results = workers.all(&["a", "b", "c", "d", "e", "f"]).await;
    assert_eq!(outcomes(&results), ["ok"; 6], "three seconds in all");
    assert_eq!(workers.counts(), (0, 0, 0));
}

#[tokio::test]
async fn u02_a_cancelled_attempt_costs_the_others_nothing_but_time() {
    let dir = TempDir::new().unwrap();
    let once = r#"
if id == "slow":
        open(os.environ["DIR"] + "/begun", "w").close()
        time.sleep(60)
    reply()"#;
    let mut workers = Workers::proven(3, with_dir(python(once.trim_start()), &dir)).await;
    let [first, second, third] = &mut workers.handlers[..] else { panic!("three") };
    let cancelled = async {
        tokio::select! {
            _ = handle(first, "slow") => panic!("it answered"),
            () = until(|| dir.path().join("begun").exists()) => {}
        }
    };
    let ((), b, c) = tokio::join!(cancelled, handle(second, "b"), handle(third, "c"));
    assert!(b.is_ok() && c.is_ok(), "{b:?} {c:?}");
    assert_eq!(workers.counts(), (1, 0, 0));
}

#[tokio::test]
async fn u02_a_process_that_recycles_itself_may_have_read_ahead() {
    // Two events of each process, and what it had read of the next ones is lost with it.
    let recycles = r#"
reply()
    if handled == 2: os._exit(0)"#;
    let restart = RestartLimit { max: 0, ..RestartLimit::default() };
    let config = ExecConfig { restart, ..python(recycles.trim_start()) };
    let mut workers = Workers::new(4, 4, config);
    for _ in 0..5 {
        let results = workers.all(&["a", "b", "c", "d"]).await;
        assert_eq!(outcomes(&results), ["ok"; 4]);
    }
    let (restarts, crashes, recycles) = workers.counts();
    assert!((restarts, crashes) == (0, 0) && recycles >= 9, "{:?}", workers.counts());
}

#[tokio::test]
async fn u02_processes_that_die_now_and_then_lose_no_event() {
    let dies = r#"
if handled == 7: os._exit(1)
    reply()"#;
    let restart = RestartLimit { max: 1000, ..RestartLimit::default() };
    let config = ExecConfig { restart, ..python(dies.trim_start()) };
    let mut workers = Workers::proven(4, config).await;
    for round in 0..25 {
        let results = workers.all(&["a", "b", "c", "d"]).await;
        assert_eq!(outcomes(&results), ["ok"; 4], "round {round}");
    }
    assert!(workers.counts().1 >= 10, "{:?}", workers.counts());
}

#[tokio::test]
async fn a_program_that_cannot_work_blames_none_of_those_in_flight() {
    for script in ["exit 1", "read line; exit 1", "echo Welcome; exec cat >/dev/null"] {
        let mut workers = Workers::new(3, 3, program(&["sh", "-c", script]));
        let results = workers.all(&["a", "b", "c"]).await;
        assert_eq!(outcomes(&results), ["Broken"; 3], "{script}");
    }
}

#[tokio::test]
async fn u05_the_process_finishes_when_the_last_of_its_workers_stops() {
    let dir = TempDir::new().unwrap();
    let mut config = with_dir(shell("reply pass"), &dir);
    config.command[2].push_str("\necho done > \"$DIR/finished\"");
    let mut workers = Workers::new(2, 2, config);
    assert_eq!(outcomes(&workers.all(&["a", "b"]).await), ["ok"; 2]);
    workers.handlers[0].stop(Duration::from_secs(10)).await;
    assert!(workers.one(1, "c").await.is_ok());
    assert!(!dir.path().join("finished").exists());
    workers.handlers[1].stop(Duration::from_secs(10)).await;
    assert_eq!(fs::read_to_string(dir.path().join("finished")).unwrap(), "done\n");
    // A worker that comes afterwards has a process of its own.
    assert!(handle(&mut workers.factory.build(0).unwrap(), "d").await.is_ok());
}

#[tokio::test]
async fn u02_what_a_dropped_worker_shared_is_killed_with_the_last_one() {
    let dir = TempDir::new().unwrap();
    let config = shell(r#"echo $$ > "$DIR/pid.tmp"; mv "$DIR/pid.tmp" "$DIR/pid"; reply pass"#);
    let mut workers = Workers::new(2, 2, with_dir(config, &dir));
    assert_eq!(outcomes(&workers.all(&["a", "b"]).await), ["ok"; 2]);
    let pid = fs::read_to_string(dir.path().join("pid")).unwrap();
    workers.handlers.pop();
    assert!(is_alive(&pid) && workers.one(0, "c").await.is_ok());
    workers.handlers.clear();
    until(|| !is_alive(&pid)).await;
}
