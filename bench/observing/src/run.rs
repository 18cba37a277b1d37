//! One side, in a process of its own.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use measure::Spent;

use crate::{
    Failure,
    pace::{Pace, WARM_UP, WINDOW},
    receiver,
    side::Side,
    visitors,
};

/// Microseconds of processor time of an event.
pub struct Window {
    pub alone: f64,
    /// Right after it, with visitors, where the side has them.
    pub watched: Option<f64>,
}

/// What came of it.
pub struct Run {
    pub windows: Vec<Window>,
    /// Seconds that each scrape took.
    pub scrapes: Vec<f64>,
}

impl Run {
    /// Of the windows in which nobody looked.
    pub fn alone(&self) -> Vec<f64> {
        self.windows.iter().map(|window| window.alone).collect()
    }
}

/// # Errors
/// The program failed, lost an event, or did not keep the pace; or a side is not what it is meant
/// to be.
pub fn run(binary: &str, side: Side, pace: Pace) -> Result<Run, Failure> {
    let directory = tempfile::tempdir()?;
    let configuration = directory.path().join("greenroom.yaml");
    let (port, taken) = match side {
        Side::Otlp => receiver::start().map(|(port, taken)| (port, Some(taken)))?,
        _ => (free_port()?, None),
    };
    fs::write(&configuration, side.configuration(pace, port))?;
    let child = Command::new(binary)
        .args(["run", "--report", "json", "--log-level", "warn"])
        .arg(&configuration)
        .current_dir(&directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    thread::sleep(WARM_UP);
    let measured = Measured { child, side, pace, port };
    let looked = measured.look();
    let output = measured.child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}: it failed; it said: {said}", side.name()).into());
    }
    look(&serde_json::from_slice(&output.stdout)?, pace)
        .map_err(|why| format!("{}: {why}; it said: {said}", side.name()))?;
    if taken.is_some_and(|taken| taken.load(Ordering::Relaxed) == 0) {
        return Err("otlp: nothing was exported".into());
    }
    let (windows, scrapes) = looked?;
    Ok(Run { windows, scrapes })
}

/// One that is measured while it runs.
struct Measured {
    child: Child,
    side: Side,
    pace: Pace,
    port: u16,
}

impl Measured {
    /// Windows in which nobody looks, and where the side has visitors, as many with them, in turn.
    fn look(&self) -> Result<(Vec<Window>, Vec<f64>), Failure> {
        let (mut windows, mut scrapes) = (Vec::new(), Vec::new());
        for _ in 0..self.pace.windows {
            let alone = self.window()?;
            let watched = match self.side {
                Side::Watched => {
                    let (watched, took) = self.watched_window()?;
                    scrapes.extend(took);
                    Some(watched)
                }
                _ => None,
            };
            windows.push(Window { alone, watched });
        }
        Ok((windows, scrapes))
    }

    /// Microseconds of processor time of an event.
    fn window(&self) -> Result<f64, Failure> {
        let (begun, before) = (Instant::now(), Spent::by(self.child.id())?);
        thread::sleep(WINDOW);
        let spent = Spent::by(self.child.id())?.since(&before);
        Ok(spent * 1e6 / (begun.elapsed().as_secs_f64() * self.pace.rate as f64))
    }

    fn watched_window(&self) -> Result<(f64, Vec<f64>), Failure> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let page = scope.spawn(|| visitors::page(self.port, &is_over));
            let scraper = scope.spawn(|| visitors::scraper(self.port, &is_over));
            let window = self.window();
            is_over.store(true, Ordering::Relaxed);
            if page.join().map_err(|_| "the page has panicked")?? < 1_000 {
                return Err("nothing came to the page".into());
            }
            Ok((window?, scraper.join().map_err(|_| "the scraper has panicked")??))
        })
    }
}

/// Whether all was handled, at the rate that was asked for.
fn look(report: &serde_json::Value, pace: Pace) -> Result<(), String> {
    let handled = report["handled"].as_u64();
    if handled != Some(pace.events()) || report["out_of_order"].as_u64() != Some(0) {
        return Err(format!("not all was handled in order: {report}"));
    }
    let seconds = report["elapsed_s"].as_f64().unwrap_or(f64::INFINITY);
    let rate = pace.events() as f64 / seconds;
    match rate >= 0.97 * pace.rate as f64 {
        true => Ok(()),
        false => Err(format!("it did not keep the pace: {rate:.0} events per second")),
    }
}

fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
