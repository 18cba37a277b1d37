//! `greenroom demo --playground`: one load, two pools, and a page to change it on.
//!
//! ```text
//!                       ┌──▶ a keyed pool: any worker takes the next event of any key
//! page ──▶ settings ──▶ load
//!                       └──▶ a sticky pool: the key's hash chooses the worker
//! page ◀── state (a few kilobytes, whatever the load) ◀── both
//! ```
//!
//! Both are pools of the library. They have the same number of workers and receive the same events
//! at the same times. Each side holds at most [`load::MOST_OF_KEY`] events of a key, and turns
//! further ones away: overload costs events, not memory.

mod load;
mod play;
mod requests;
mod settings;
mod side;
mod target;
#[cfg(test)]
mod tests;
mod view;
mod window;

use std::{convert::Infallible, io::Write, process::ExitCode, sync::Arc};

use tokio::signal;

use self::play::Playground;
use crate::{
    admin::Site,
    exit::{Exit, LAST_TASKS},
};

/// Runs until Ctrl-C.
pub(super) fn playground(address: &str) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let played = runtime.block_on(async {
        tokio::select! {
            Err(why) = open(address) => Err(why),
            _ = signal::ctrl_c() => Ok(()),
        }
    });
    runtime.shutdown_timeout(LAST_TASKS);
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

async fn open(address: &str) -> Result<Infallible, String> {
    let site = Site::bind(address).await?;
    let playground = Arc::new(Playground::new(1).await?);
    // When standard error is closed, nothing can be reported any more.
    let _ = writeln!(
        std::io::stderr(),
        "the playground is at http://{}/ until Ctrl-C",
        site.address()?
    );
    tokio::spawn({
        let playground = playground.clone();
        async move { playground.play(1).await }
    });
    Ok(site.serve(requests::requests(playground)).await)
}
