//! Arbitrary octets of a load balancer: a reader that reads as much as is said to be missing finds the same header
//! as one that has everything, and nothing is read beyond it; addresses are the same after they were written again.
#![no_main]

use eyas_http::proxy_protocol::{self, Header, MAX_LENGTH};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<5> = Reach::new([
    "something else",
    "an incomplete header",
    "a header without addresses",
    "a line of version 1 with addresses",
    "a header of version 2 with addresses",
]);

fuzz_target!(|bytes: &[u8]| {
    REACH.begin();
    let mut read = 0;
    loop {
        match proxy_protocol::parse(&bytes[..read]) {
            Err(_) => {
                REACH.hit("something else");
                // More octets do not make a header of it.
                assert!(proxy_protocol::parse(bytes).is_err());
                return;
            }
            Ok(Header::Incomplete(missing)) => {
                assert!(missing > 0);
                read += missing;
                assert!(read <= MAX_LENGTH);
                if read > bytes.len() {
                    return REACH.hit("an incomplete header");
                }
            }
            Ok(Header::Complete { length, addresses, is_encrypted }) => {
                assert_eq!(length, read);
                let header = Header::Complete { length, addresses, is_encrypted };
                assert_eq!(proxy_protocol::parse(bytes), Ok(header));
                let Some(client) = addresses else {
                    return REACH.hit("a header without addresses");
                };
                REACH.hit(match bytes[0] {
                    b'P' => "a line of version 1 with addresses",
                    _ => "a header of version 2 with addresses",
                });
                let written = proxy_protocol::header(Some(client)).expect("it fits");
                let length = written.len();
                let again = Header::Complete { length, addresses, is_encrypted: false };
                assert_eq!(proxy_protocol::parse(&written), Ok(again));
                return;
            }
        }
    }
});
