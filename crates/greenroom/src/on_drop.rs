//! Work for the end of a scope.

/// Does this when it is dropped, unless it is defused.
pub(crate) struct OnDrop<F: FnMut()>(Option<F>);

impl<F: FnMut()> OnDrop<F> {
    pub(crate) fn new(then: F) -> Self {
        Self(Some(then))
    }

    pub(crate) fn defuse(mut self) {
        self.0 = None;
    }
}

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(then) = &mut self.0 {
            then();
        }
    }
}
