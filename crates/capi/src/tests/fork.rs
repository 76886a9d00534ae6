//! Tests that a child process can only free the handles of its parent.

use super::{call_with_error, endpoint, pair};
use crate::{
    code::EYAS_MISUSE,
    connection::{eyas_connection_abort, eyas_connection_free, eyas_connection_read},
    endpoint::{eyas_endpoint_free, eyas_endpoint_wait_for_connections},
    pointer::OutPointer,
};

#[test]
fn a_forked_child_is_refused_and_may_free() {
    let endpoint = endpoint();
    let (here, there) = pair(&endpoint);
    // SAFETY: the child makes only calls that the header allows there, and then exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut buffer = [0; 4];
        let refused = [
            eyas_connection_read(
                Some(&here),
                (&mut buffer[..]).into(),
                4,
                OutPointer::from_place(&mut std::mem::MaybeUninit::uninit()),
                -1,
                OutPointer::null(),
            ),
            eyas_connection_abort(Some(&here), OutPointer::null()),
            eyas_endpoint_wait_for_connections(Some(&endpoint), -1, OutPointer::null()),
        ];
        eyas_connection_free(Some(here));
        eyas_connection_free(Some(there));
        eyas_endpoint_free(Some(endpoint));
        // SAFETY: exits at once, without the exit handlers of the parent.
        unsafe { libc::_exit(i32::from(refused != [EYAS_MISUSE; 3])) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and `status` is valid.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((ended, libc::WEXITSTATUS(status), libc::WIFEXITED(status)), (child, 0, true));
    // Those of the parent still work.
    let (code, text) = call_with_error(|error| eyas_connection_abort(Some(&here), error));
    assert_eq!(code, 0, "{text}");
    super::free([here, there]);
}
