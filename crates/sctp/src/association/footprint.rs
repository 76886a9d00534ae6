//! How much memory an idle association takes: 4 KiB with all that hangs on it, most of which is
//! here. What is allocated beside it, `cargo xtask bench sctp` measures.

use core::mem::size_of;

use super::Association;
use crate::path::Path;

#[test]
fn an_association_with_one_path_leaves_room_for_the_rest() {
    let bytes = size_of::<Association>() + size_of::<Path>();
    assert!(bytes <= 2560, "{bytes} bytes");
}
