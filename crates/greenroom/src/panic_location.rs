//! The place where a panic was raised.
//!
//! Code that catches a panic gets its payload, which is usually its message. Only the panic hook
//! gets the place in the source, and there is one hook for the whole process, which belongs to the
//! program. So the hook is left alone unless the program asks for it:
//!
//! ```text
//! panic! ──▶ our hook: file, line, column ──▶ thread-local ──┐
//!                │                                           ├─▶ ExitReason::Panicked { message, location }
//!                └─▶ the hook that was there before          │
//! unwinding ──▶ caught, on the same thread ──▶ its message ──┘
//! ```
//!
//! Without [`install`] everything works the same, and the location of a panic is `None`. It is also
//! `None` if the panic crossed from another thread, or was raised by `resume_unwind`, which calls
//! no hook.
//!
//! # Price
//! A copy of the file's name for each panic, and the memory of one panic for each thread that has
//! panicked.
//!
//! # Out of contract
//! * A program built with `panic = "abort"`: a panic ends the process, and no pool can
//!   do anything about it.
//! * A `Drop` that panics while a panic unwinds: that aborts the process too.

use std::{
    any::{Any, TypeId},
    cell::Cell,
    fmt,
    panic::{self, PanicHookInfo},
    sync::{Arc, Once},
};

/// A place in the source.
///
/// ```
/// # use greenroom::panic_location::PanicLocation;
/// let location = PanicLocation { file: "src/main.rs".into(), line: 3, column: 9 };
/// assert_eq!(location.to_string(), "src/main.rs:3:9");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PanicLocation {
    /// The file, by the name that the compiler got.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for PanicLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

static INSTALLED: Once = Once::new();

thread_local! {
    /// The last panic on this thread whose location was not queried yet.
    static LAST: Cell<Option<(PanicPayload, PanicLocation)>> = const { Cell::new(None) };
}

/// Records the locations of panics, for the whole process and for good. The existing hook is called
/// as before. Only the first call has an effect.
///
/// Call it first in `main`, after you set a hook of your own: a hook that is set later without
/// calling this one replaces it.
///
/// ```
/// greenroom::panic_location::install();
/// ```
///
/// # Panics
/// If it is called from a `Drop` while a panic unwinds, like [`std::panic::set_hook`].
pub fn install() {
    INSTALLED.call_once_force(|_| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            remember(panic);
            before(panic);
        }));
    });
}

/// The location of the panic that was just caught on this thread with this payload. Each is
/// returned once.
pub(crate) fn of(caught: &(dyn Any + Send)) -> Option<PanicLocation> {
    let (carried, location) = LAST.try_with(Cell::take).ok()??;
    (carried == PanicPayload::by(caught)).then_some(location)
}

fn remember(panic: &PanicHookInfo<'_>) {
    let Some(at) = panic.location() else { return };
    let location = PanicLocation { file: at.file().into(), line: at.line(), column: at.column() };
    let last = (PanicPayload::by(panic.payload()), location);
    // A panic while the thread's locals are torn down is not remembered.
    let _ = LAST.try_with(|cell| cell.set(Some(last)));
}

/// The payload of a panic, as far as both the hook and the code that catches it can see: the
/// text is the same piece of memory. So a location is not mistaken for that of a later panic
/// that the hook did not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PanicPayload {
    of: TypeId,
    /// Address and length, if it is text.
    text: Option<(usize, usize)>,
}

impl PanicPayload {
    fn by(payload: &dyn Any) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.map(|text| (text.as_ptr().addr(), text.len()));
        Self { of: payload.type_id(), text }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, resume_unwind};

    use parking_lot::Mutex;

    use super::*;

    /// The hook is one for the process: these tests take turns.
    static TURN: Mutex<()> = Mutex::new(());

    type Caught = Box<dyn Any + Send>;

    /// The caught panic, and the line where it was raised.
    fn caught(raise: fn()) -> Caught {
        catch_unwind(raise).unwrap_err()
    }

    fn formatted() {
        panic!("on purpose, {}", std::hint::black_box(line!()));
    }

    fn line_of(panic: &Caught) -> Option<u32> {
        of(&**panic).map(|at| at.line)
    }

    #[test]
    fn a11_a_caught_panic_is_located() {
        let _turn = TURN.lock();
        install();
        let plain = caught(|| panic!("on purpose"));
        let at = of(&*plain).unwrap();
        assert!(at.file.ends_with("panic_location.rs"), "{at}");
        assert_eq!((at.line, line_of(&plain)), (line!() - 3, None), "and told once");

        let with_figures = caught(formatted);
        let line: u32 = with_figures.downcast_ref::<String>().unwrap()[12..].parse().unwrap();
        assert_eq!(line_of(&with_figures), Some(line));

        let of_a_value = caught(|| panic::panic_any(7_u8));
        assert_eq!(line_of(&of_a_value), Some(line!() - 1));
    }

    #[test]
    fn a11_the_location_of_another_panic_is_not_taken_for_this_one() {
        let _turn = TURN.lock();
        install();
        let _handled_by_user_code = caught(formatted);
        let silent = caught(|| resume_unwind(Box::new("on purpose".to_owned())));
        assert_eq!(line_of(&silent), None);

        let elsewhere = std::thread::spawn(formatted).join().unwrap_err();
        assert_eq!(line_of(&elsewhere), None, "it was another thread's");
    }

    thread_local! {
        static HEARD: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn a11_the_hook_is_chained_and_installed_once() {
        let _turn = TURN.lock();
        install();
        let ours = panic::take_hook();
        panic::set_hook(Box::new(|_| HEARD.set(HEARD.get() + 1)));
        install();
        let unheard_of = caught(formatted);
        assert_eq!((HEARD.get(), line_of(&unheard_of)), (1, None), "it is not installed again");
        panic::set_hook(ours);
        assert!(line_of(&caught(formatted)).is_some());
    }
}
