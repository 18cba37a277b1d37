//! `greenroom top [ADDRESS]`: the essentials of a running greenroom on a terminal (O08, C05).
//!
//! It listens to the same stream as the dashboard, and draws each sample over the last one.

mod keyboard;
mod screen;
mod stream;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;

use self::keyboard::{listen, size};
use self::{screen::PoolOrder, stream::Samples};
use crate::{admin_client, cli::TopArgs, exit::Exit};

/// The time between two attempts to reach a lost greenroom.
const AGAIN: Duration = Duration::from_secs(1);

/// Moves to the start of the terminal; the others clear the rest of a line, and all the rest.
const HOME: &str = "\x1b[H";
const TO_END_OF_LINE: &str = "\x1b[K";
const TO_END: &str = "\x1b[J";

/// Shows a running greenroom until it is interrupted; once, if requested or if standard output is
/// no terminal.
pub fn top(arguments: &TopArgs) -> ExitCode {
    let is_drawn = !arguments.once && io::stdout().is_terminal();
    let order = Arc::<Mutex<PoolOrder>>::default();
    if is_drawn {
        listen(&order);
    }
    let address = &*arguments.address;
    let mut looks = Looks { address, is_drawn, order, last: None, gone: None };
    loop {
        let mut is_over = false;
        let heard = admin_client::listen(
            &arguments.address,
            "/api/live",
            &mut Samples::new(|sample| {
                is_over = looks.look(sample);
                !is_over
            }),
        );
        if is_over {
            return ExitCode::SUCCESS;
        }
        let why = heard.err().unwrap_or_else(|| "the run has ended".to_owned());
        if !is_drawn || looks.last.is_none() {
            return Exit::CouldNotRun.because(why);
        }
        if looks.is_gone(&why).is_err() {
            return ExitCode::SUCCESS;
        }
        thread::sleep(AGAIN);
    }
}

/// The state of the display.
struct Looks<'a> {
    address: &'a str,
    /// Draws each sample over the last one, until it is interrupted.
    is_drawn: bool,
    order: Arc<Mutex<PoolOrder>>,
    /// The last sample: rates need two.
    last: Option<Value>,
    /// Since when there has been no answer.
    gone: Option<Instant>,
}

impl Looks<'_> {
    /// True if that was all.
    fn look(&mut self, sample: Value) -> bool {
        let before = self.last.replace(sample);
        let (Some(before), Some(now)) = (before, &self.last) else { return false };
        self.gone = None;
        let order = *self.order.lock();
        let shown = match self.is_drawn {
            true => draw(&screen::fitted(self.address, (&before, now), order, size())),
            false => print(&screen::render(self.address, &before, now, order)),
        };
        // The reader of standard output may have closed it.
        !self.is_drawn || shown.is_err()
    }

    /// The last sample stays, under a line that says since when.
    fn is_gone(&mut self, why: &str) -> io::Result<()> {
        let since = self.gone.get_or_insert_with(Instant::now).elapsed().as_secs();
        let Some(last) = &self.last else { return Ok(()) };
        let (columns, lines) = size();
        let order = *self.order.lock();
        let text = screen::fitted(self.address, (last, last), order, (columns, lines - 2));
        let gone = format!("GONE for {since} s, the last sample follows: {why}");
        let gone: String = gone.chars().take(columns).collect();
        draw(&format!("{gone}\n\n{text}"))
    }
}

fn draw(text: &str) -> io::Result<()> {
    let lines: Vec<_> = text.lines().map(|line| format!("{line}{TO_END_OF_LINE}")).collect();
    // No line end after the last line: it would move all of them up.
    print(&format!("{HOME}{}{TO_END}", lines.join("\n")))
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
