//! Enumerations whose values have a spelling in files, reports and metrics.

/// Declares such an enumeration: each variant with its spelling, and the name of the function that
/// returns it.
#[doc(hidden)]
#[macro_export]
macro_rules! spelled {
    (
        $spelling:ident:
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// All values, in this order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The spelling used in files, reports and metrics.
            pub const fn $spelling(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}
