//! The demo while it runs: a table on a terminal, or else a line every second.

use std::{
    io::{self, Write},
    time::Duration,
};

use super::{show::Show, table};
use crate::progress;

/// Rare enough to read each line.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Shows until the future is dropped, on standard error.
pub(super) async fn show(show: &Show) {
    if progress::can_draw() {
        progress::text(|| table::live(show)).await;
    }
    let mut ticks = progress::ticks(LINE_EVERY);
    loop {
        ticks.tick().await;
        // When standard error is closed, nothing can be reported any more.
        let _ = writeln!(io::stderr(), "{}", table::line(show));
    }
}
