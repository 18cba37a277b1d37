//! A panic is our mistake: the user sees one line, not a stack trace (C11).

use std::{
    io::{self, Write},
    panic::{self, PanicHookInfo},
    process, thread,
};

use greenroom_bus::handler::exec::kill_all;

use crate::version;

/// Replaces the hook that prints a stack trace. A panic of the main thread ends the process with
/// exit code 1; in other threads the code that runs them catches it.
pub(crate) fn install() {
    panic::set_hook(Box::new(|info| {
        // When standard error is closed, nothing can be reported any more.
        let _ = writeln!(io::stderr(), "{}", line(info));
        if thread::current().name() == Some("main") {
            kill_all();
            process::exit(1);
        }
    }));
}

fn line(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
    let what = info.payload_as_str().unwrap_or("unknown cause").replace('\n', " ");
    format!("internal error: {what} ({place}, greenroom {}); please report it", version::SHORT)
}
