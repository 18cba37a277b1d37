//! Implementations that many types have, and `derive` cannot make: `Debug` and `Clone` of types
//! whose parameters have neither, and the hooks of an actor that has another inside.

/// `impl_debug!([M, R] Name<M, R>, |this| field: this.field)`: a type shows these fields.
macro_rules! impl_debug {
    ([$($parameters:tt)*] $name:ident $(<$($argument:tt),+>)?,
     |$this:pat_param| $($field:ident: $value:expr),* $(,)?) => {
        impl<$($parameters)*> std::fmt::Debug for $name $(<$($argument),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}

/// `impl_clone!([M, R] Name<M, R>: field, other)`: a type is cloned field by field.
macro_rules! impl_clone {
    ([$($parameters:tt)*] $name:ident<$($argument:tt),+>: $($field:ident),+) => {
        impl<$($parameters)*> Clone for $name<$($argument),+> {
            fn clone(&self) -> Self {
                Self { $($field: Clone::clone(&self.$field)),+ }
            }
        }
    };
}

/// Each hook goes to the actor inside, with the context lent to it.
macro_rules! hooks_of_inner {
    () => {
        async fn started(&mut self, cx: &mut Context<Self>) -> Result<(), A::Error> {
            let (actor, .., mut cx) = self.inside(cx);
            actor.started(&mut cx).await
        }

        async fn restarting(&mut self, reason: &crate::ExitReason) {
            self.actor.restarting(reason).await;
        }

        async fn exited(
            &mut self,
            who: Option<&crate::AnyAddress>,
            reason: &crate::ExitReason,
            cx: &mut Context<Self>,
        ) -> crate::OnExit {
            let (actor, .., mut cx) = self.inside(cx);
            actor.exited(who, reason, &mut cx).await
        }

        async fn down(
            &mut self,
            who: &crate::AnyAddress,
            reason: &crate::ExitReason,
            cx: &mut Context<Self>,
        ) {
            let (actor, .., mut cx) = self.inside(cx);
            actor.down(who, reason, &mut cx).await;
        }

        async fn stopped(&mut self, reason: &crate::ExitReason) {
            self.actor.stopped(reason).await;
        }
    };
}
