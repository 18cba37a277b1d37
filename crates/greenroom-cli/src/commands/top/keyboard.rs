//! Keys to press while the screen is shown: `q` and `s`.

use std::{
    io::{self, Read, Write},
    sync::Arc,
    thread,
};

use parking_lot::Mutex;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::screen::PoolOrder;

/// Ctrl-C, if the terminal does not turn it into a signal.
const INTERRUPT: u8 = 3;

/// The terminal's settings, to be restored at the end.
struct Restored(Termios);

impl Restored {
    fn now(&self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Listens to the keyboard until the process ends. Without a terminal, it does nothing.
pub(super) fn listen(order: &Arc<Mutex<PoolOrder>>) {
    let Ok(before) = tcgetattr(io::stdin()) else { return };
    let mut raw = before.clone();
    raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    if tcsetattr(io::stdin(), OptionalActions::Now, &raw).is_err() {
        return;
    }
    let (before, order) = (Restored(before), order.clone());
    thread::spawn(move || {
        for key in io::stdin().lock().bytes() {
            match key {
                Ok(b's') => {
                    let mut order = order.lock();
                    *order = order.next();
                }
                Ok(b'q' | INTERRUPT) => {
                    before.now();
                    // The screen stays, and the prompt appears below it.
                    let _ = writeln!(io::stdout());
                    std::process::exit(0);
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    });
}

/// Columns and lines of the terminal; those of the smallest one if they are unknown.
pub(super) fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}
