//! The `greenroom` binary; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    greenroom_cli::main()
}
