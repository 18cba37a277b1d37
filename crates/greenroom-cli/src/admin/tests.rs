//! What only shows with handlers that no configuration has.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
    source::generator::{GeneratorOptions, GeneratorSource},
};

use super::{Daemon, Figures, History, Listener};
use crate::{
    cli::Source,
    config,
    run::{assemble::LettersAt, layers::HandlerLayers, reload::Reload},
};

/// Blocks the threads that it runs on until it is told not to.
#[derive(Clone, Default)]
struct Block {
    over: Arc<AtomicBool>,
    blocked: Arc<AtomicUsize>,
}

impl HandlerFactory for Block {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Block {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        self.blocked.fetch_add(1, SeqCst);
        while !self.over.load(SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        Handling::Done(Ok(Outputs::None))
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn o09_handlers_that_block_every_thread_of_the_runtime_hold_up_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.yaml");
    let text = "
inputs: { g: { generator: { count: 100 } } }
handlers: { block: { on: '**', order_by: subject, drop: } }
admin: { listen: 127.0.0.1:0 }
";
    std::fs::write(&file, text).unwrap();
    let source = Source { file, settings: Vec::new() };
    let (config, problems) = config::load(&source.file, &[]);
    let config = config.unwrap_or_else(|| panic!("{}", problems.render(false)));
    let dead_letters = directory.path().join("letters");
    let block = Block::default();
    let mut handler = HandlerConfig::new(vec!["**".parse().unwrap()], Arc::new(block.clone()));
    handler.order_by = Some("subject".parse().unwrap());
    let options = GeneratorOptions { count: Some(100), keys: 50, ..GeneratorOptions::default() };
    let builder = Engine::builder()
        .input(Box::new(GeneratorSource::new(options).unwrap()))
        .pool("default", PoolConfig { workers: 8, queue: 10, ..PoolConfig::default() })
        .handler("block", handler)
        .dead_letters(Arc::new(FileDeadLetterStore::open(&dead_letters).unwrap()));
    let listener = Listener::bind(config.admin.as_ref().unwrap()).unwrap();
    let address = listener.listener.local_addr().unwrap().to_string();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let engine = runtime.block_on(builder.build()).unwrap();
    let control = engine.control();
    let reload =
        Reload::new(source, control.clone(), config, runtime.handle().clone(), Arc::default());
    let reload = Arc::new(reload);
    let layers = Arc::<HandlerLayers>::default();
    let figures = Figures::new(control.clone(), reload.clone(), layers.clone(), None, None);
    let figures = Arc::new(figures);
    let _open = listener
        .open(Daemon {
            control,
            reload,
            layers,
            dead_letters: LettersAt::File(dead_letters),
            figures,
            history: History::default(),
            started: Instant::now(),
        })
        .unwrap();
    let run = runtime.spawn(engine.run());
    let late = Instant::now() + Duration::from_secs(10);
    while block.blocked.load(SeqCst) < 2 {
        assert!(Instant::now() < late, "both threads are blocked");
        thread::sleep(Duration::from_millis(5));
    }
    let started = Instant::now();
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/pools",
        "/api/pools/default/workers",
        "/api/handlers",
        "/api/keys?key=k",
        "/",
    ] {
        let answer = get(&address, path);
        assert!(answer.starts_with("HTTP/1.0 200"), "{path}: {answer}");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    block.over.store(true, SeqCst);
    let report = runtime.block_on(run).unwrap();
    assert_eq!((report.taken, report.handled), (100, 100));
}
