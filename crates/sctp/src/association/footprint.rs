//! The memory of an idle association: 4 KiB including its allocations. Most of it is measured here;
//! `cargo eyas-bench sctp` measures what is allocated separately.

use core::mem::size_of;

use super::Association;
use crate::path::Path;

#[test]
fn an_association_with_one_path_stays_within_its_share() {
    let bytes = size_of::<Association>() + size_of::<Path>();
    assert!(bytes <= 2560, "{bytes} bytes");
}
