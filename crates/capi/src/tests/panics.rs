//! Panics stay on this side of the border.

use super::called;
use crate::{
    call::{answer, release},
    code::EYAS_BUG,
};

#[test]
fn a_panic_becomes_an_error_with_its_words() {
    let (code, text) = called(|error| answer(error, || panic!("the {} is broken", "core")));
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
