//! The `greenroom` binary; everything is in the library next to it.

use std::process::ExitCode;

/// Events are allocated on one thread and freed on another. This allocator does that without a
/// lock: `bench/end-to-end` runs a third faster than with the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    greenroom_cli::main()
}
