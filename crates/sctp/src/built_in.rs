//! Lists of built-in algorithms that callers can replace by their own.

/// The list: an enum that names each one, with its name in plans and on command lines, what it is in
/// one line, and the expression that makes it. The enum is a factory as a caller's own one would be.
macro_rules! built_in {
    (
        $(#[$about_kind:meta])*
        pub enum $kind:ident: $factory:ident {
            fn build($($parameter:ident: $type:ty),*) -> $made:ty;
            $($(#[$about_variant:meta])* $variant:ident($name:literal, $about:literal) => $make:expr;)+
        }
    ) => {
        $(#[$about_kind])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
        #[non_exhaustive]
        pub enum $kind {
            $($(#[$about_variant])* $variant,)+
        }

        impl $kind {
            /// All kinds.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name used in plans and on command lines.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns a one-line description.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)+
                }
            }

            /// Returns the kind with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl $factory for $kind {
            #[allow(unused_variables, reason = "some kinds need no parameters")]
            fn build(&self, $($parameter: $type),*) -> $made {
                match self {
                    $(Self::$variant => $make,)+
                }
            }
        }

        impl crate::config::AlgorithmSelection<$kind, dyn $factory> {
            /// Returns the factory of the selected one.
            pub(crate) fn factory(&self) -> &dyn $factory {
                match self {
                    Self::BuiltIn(kind) => kind,
                    Self::Custom(factory) => factory.as_ref(),
                }
            }
        }
    };
}

pub(crate) use built_in;
