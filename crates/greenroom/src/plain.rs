//! `Debug` and `Clone` of types whose parameters need neither, which `derive` would ask of them.

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
