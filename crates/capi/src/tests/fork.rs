//! What a child process can do with what its parent has made: free it, and no more.

use super::{called, endpoint, pair};
use crate::{
    code::EYAS_MISUSE,
    connection::{eyas_connection_abort, eyas_connection_free, eyas_connection_read},
    endpoint::{eyas_endpoint_free, eyas_endpoint_wait_for_associations},
    pointer::Out,
};

#[test]
fn a_forked_child_is_refused_and_may_free() {
    let endpoint = endpoint();
    let (here, there) = pair(&endpoint);
    // SAFETY: the child calls only what the header allows there, and ends without anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut room = [0; 4];
        let refused = [
            eyas_connection_read(
                Some(&here),
                (&mut room[..]).into(),
                4,
                Out::to(&mut std::mem::MaybeUninit::uninit()),
                -1,
                Out::nowhere(),
            ),
            eyas_connection_abort(Some(&here), Out::nowhere()),
            eyas_endpoint_wait_for_associations(Some(&endpoint), -1, Out::nowhere()),
        ];
        eyas_connection_free(Some(here));
        eyas_connection_free(Some(there));
        eyas_endpoint_free(Some(endpoint));
        // SAFETY: ends this process at once, without what the parent has registered.
        unsafe { libc::_exit(i32::from(refused != [EYAS_MISUSE; 3])) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the place for its status is here.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((ended, libc::WEXITSTATUS(status), libc::WIFEXITED(status)), (child, 0, true));
    // The parent's go on.
    let (code, text) = called(|error| eyas_connection_abort(Some(&here), error));
    assert_eq!(code, 0, "{text}");
    super::free([here, there]);
}
