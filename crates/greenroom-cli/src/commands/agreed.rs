//! Asks on a terminal before an irreversible step.

use std::io::{self, BufRead, IsTerminal, Write};

/// Asks for confirmation.
///
/// # Errors
/// `otherwise` if there is no terminal; or the answer could not be read.
pub(crate) fn agreed(question: &str, otherwise: &str) -> Result<bool, String> {
    if !io::stdin().is_terminal() {
        return Err(otherwise.to_owned());
    }
    let _ = write!(io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| format!("no answer: {error}"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
