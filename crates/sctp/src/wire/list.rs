//! Lists of parameters and of error causes, which only differ in their elements.

/// Defines a list type. `$read` and `$broken` create an element from a part of the packet.
macro_rules! element_list {
    ($(#[$documentation:meta])* $list:ident, $element:ident, $read:expr, $broken:expr) => {
        $(#[$documentation])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $list(bytes::Bytes);

        impl $list {
            /// Creates a list from its encoding.
            #[must_use]
            pub const fn from_bytes(bytes: bytes::Bytes) -> Self {
                Self(bytes)
            }

            /// Returns the encoded list; the last element has no padding.
            #[must_use]
            pub const fn as_bytes(&self) -> &bytes::Bytes {
                &self.0
            }

            /// Returns whether the list is empty.
            #[cfg(any(test, feature = "internals"))]
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// Returns the elements. One whose length does not fit is malformed, and is the last
            /// one.
            pub fn iter(&self) -> impl Iterator<Item = $element> + '_ {
                use $crate::wire::walker::{WalkerStep, PacketView, ElementWalker};
                ElementWalker::new(PacketView::whole(&self.0)).map(|step| match step {
                    WalkerStep::Element(view) => $read(view),
                    WalkerStep::Broken(view) => $broken(view.u16_at(0).unwrap_or_default()),
                })
            }
        }

        impl FromIterator<$element> for $list {
            /// Encodes a list; the caller ensures that it fits a chunk.
            fn from_iter<T: IntoIterator<Item = $element>>(elements: T) -> Self {
                let mut buffer = bytes::BytesMut::new();
                for element in elements {
                    buffer.resize($crate::wire::padded(buffer.len()), 0);
                    element.encode(&mut buffer);
                }
                Self(buffer.freeze())
            }
        }
    };
}

pub(super) use element_list;
