//! Tests that panics do not reach C.

use super::call_with_error;
use crate::{
    call::{ffi_call_with_code, release},
    code::EYAS_BUG,
};

#[test]
fn a_panic_becomes_an_error_with_its_message() {
    let (code, text) =
        call_with_error(|error| ffi_call_with_code(error, || panic!("the {} is broken", "core")));
    assert_eq!(code, EYAS_BUG);
    assert!(text.contains("the core is broken"), "{text}");
}

#[test]
fn a_panic_in_drop_is_caught() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("while dropped");
        }
    }
    release(Box::new(Panics));
}
