//! Events from a file through a keyed pool to a file, measured beside a floor that only reads, parses and writes.
//!
//! `end-to-end [--events N] [--rounds N]` writes N events once, then runs floor and engine in turn (A B A B), each in a
//! process of its own so that its peak memory is its own, and once more with ten times the events. Prints a table with
//! medians, ranges and the ratio of each round. Exits with 1 when the engine's memory is above its bound or grows with the
//! input, or when an event is lost; speed is printed, not judged, because machines differ.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    time::Instant,
};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::{Event, ExtraValue},
    handler::pass::PassFactory,
    sink::file::{FileSink, FileSinkOptions},
    source::file::{FileSource, FileSourceOptions},
};

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

const WORKERS: usize = 64;
/// The bound on the engine's peak memory.
const MEMORY_BOUND: u64 = 150 << 20;
/// How much more it may take for ten times the input. The peak is the highest point of a level that goes up and down by some
/// 15 MiB with the moment at which the threads meet; a run of 200,000 events sees as much of it as a longer one. This is
/// less than 14 bytes for each further event.
const GROWTH_BOUND: u64 = 24 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["floor", input, output] => one(|| floor(Path::new(input), Path::new(output))),
        ["engine", input, output] => one(|| engine(Path::new(input), Path::new(output))),
        options => compare(number(options, "--events", 200_000), number(options, "--rounds", 5)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn number(args: &[&str], name: &str, default: usize) -> usize {
    let place = args.iter().position(|arg| *arg == name);
    place.and_then(|place| args.get(place + 1)?.parse().ok()).unwrap_or(default)
}

/// Runs one side and prints its seconds, its peak memory and its events.
fn one(run: impl FnOnce() -> Result<u64, Failure>) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    let events = run()?;
    println!("{} {} {events}", start.elapsed().as_secs_f64(), peak_memory()?);
    Ok(ExitCode::SUCCESS)
}

fn peak_memory() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1_024)
}

fn floor(input: &Path, output: &Path) -> Result<u64, Failure> {
    let mut reader = BufReader::with_capacity(256 << 10, File::open(input)?);
    let mut writer = BufWriter::with_capacity(256 << 10, File::create(output)?);
    let (mut line, mut out, mut events) = (Vec::new(), Vec::new(), 0);
    let extra = [
        ("greenroompool", ExtraValue::Text("default")),
        ("greenroomattempt", ExtraValue::Integer(1)),
    ];
    while reader.read_until(b'\n', &mut line)? > 0 {
        let event = Event::parse(line.trim_ascii_end())?;
        event.write_json_with(&extra, &mut out);
        out.push(b'\n');
        writer.write_all(&out)?;
        out.clear();
        line.clear();
        events += 1;
    }
    writer.into_inner().map_err(|error| error.into_error())?.sync_data()?;
    Ok(events)
}

fn engine(input: &Path, output: &Path) -> Result<u64, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory));
        handler.order_by = Some("subject".parse()?);
        let engine = Engine::builder()
            .input(Box::new(FileSource::open(input, FileSourceOptions::default())?))
            .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
            .handler("all", handler)
            .output(
                "done",
                vec!["**".parse()?],
                Arc::new(FileSink::open(output, FileSinkOptions { truncate: true })?),
            )
            .dead_letters(Arc::new(FileDeadLetterStore::open(output.with_extension("dead"))?))
            .build()
            .await?;
        Ok::<_, Failure>(engine.run().await)
    })?;
    if !report.is_clean() || report.out_of_order > 0 || report.handled != report.taken {
        return Err(format!("{report:?}").into());
    }
    Ok(report.handled)
}

/// What one process printed.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    memory: u64,
    events: u64,
}

fn run(side: &str, input: &Path) -> Result<Run, Failure> {
    let output = input.with_extension(side);
    let ran = Command::new(std::env::current_exe()?).arg(side).args([input, &output]).output()?;
    std::fs::remove_file(&output).ok();
    let text = String::from_utf8(ran.stdout)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [seconds, memory, events] = words.as_slice() else {
        return Err(format!("{side}: {}", String::from_utf8_lossy(&ran.stderr)).into());
    };
    Ok(Run { seconds: seconds.parse()?, memory: memory.parse()?, events: events.parse()? })
}

/// Events like those of a repository's history: a path as the subject, skewed, some 400 bytes a line.
fn write_events(path: &Path, count: usize) -> Result<(), Failure> {
    let mut writer = BufWriter::new(File::create(path)?);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for number in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The square of an even number is skewed to small ones: some keys are hot, most are cold.
        let even = (random >> 40) as f64 / (1_u64 << 24) as f64;
        let key = (even * even * 24_000.0) as u32;
        writeln!(
            writer,
            r#"{{"specversion":"1.0","id":"{number:08}","source":"/repository/main","type":"repo.file.modified","subject":"module-{}/src/main/scala/package/File{key}.scala","time":"2026-01-01T00:00:00Z","datacontenttype":"application/json","data":{{"commit":"{random:016x}{random:016x}","author":"a{:06x}","revision":{number},"mode":"100644","size":{}}}}}"#,
            key % 40,
            random & 0xFF_FFFF,
            random % 100_000,
        )?;
    }
    writer.flush()?;
    Ok(())
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn compare(events: usize, rounds: usize) -> Result<ExitCode, Failure> {
    let scratch =
        Scratch(std::env::temp_dir().join(format!("greenroom-end-to-end-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0)?;
    let (small, large) = (scratch.0.join("small.ndjson"), scratch.0.join("large.ndjson"));
    eprintln!("writing {events} and {} events", events * 10);
    write_events(&small, events)?;
    write_events(&large, events * 10)?;
    describe(events, &small)?;
    run("floor", &small)?;
    let (mut floors, mut engines) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        floors.push(run("floor", &small)?);
        engines.push(run("engine", &small)?);
        eprintln!("round {round} of {rounds}");
    }
    let large_run = run("engine", &large)?;
    row("floor: read, parse, write", &floors);
    row("engine: 64 workers, by subject", &engines);
    let ratios: Vec<f64> =
        floors.iter().zip(&engines).map(|(floor, engine)| floor.seconds / engine.seconds).collect();
    let [low, median, high] = spread(&ratios);
    println!(
        "engine / floor                    {median:>9.2} x        {low:.2} to {high:.2}   (aim: 0.60 and more)"
    );
    let memory = engines.iter().map(|run| run.memory).max().unwrap_or(0);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "peak memory {:.1} MiB; with ten times the events {:.1} MiB",
        mib(memory),
        mib(large_run.memory)
    );
    let whole = engines.iter().all(|run| run.events == events as u64)
        && large_run.events == 10 * events as u64;
    let bounded =
        memory <= MEMORY_BOUND && large_run.memory <= MEMORY_BOUND.min(memory + GROWTH_BOUND);
    if !(whole && bounded) {
        eprintln!("error: events were lost, or memory is above its bound");
    }
    Ok(if whole && bounded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(events: usize, input: &Path) -> Result<(), Failure> {
    let bytes = std::fs::metadata(input)?.len();
    let cores = std::thread::available_parallelism()?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cpu = cpu.trim_start_matches(['\t', ' ', ':']);
    println!("greenroom {}, {cores} cores, {cpu}", env!("CARGO_PKG_VERSION"));
    println!("{events} events of {} bytes each", bytes / events as u64);
    println!("{:<33} {:>10}    {:>10}", "", "events/s", "range");
    Ok(())
}

fn row(name: &str, runs: &[Run]) {
    let rates: Vec<f64> = runs.iter().map(|run| run.events as f64 / run.seconds).collect();
    let [low, median, high] = spread(&rates);
    println!("{name:<33} {median:>10.0}    {low:.0} to {high:.0}");
}

/// The least, the median and the greatest.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}
