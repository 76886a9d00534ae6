//! Profiles set the documented values, and leave the other settings alone.

use super::MultipathProfile;
use crate::config::{AssociationConfig, BufferSplitting, MultipathConfig, StreamMapping};

#[test]
fn a_profile_keeps_the_mapping_and_the_buffers() {
    let mut config = AssociationConfig {
        send_buffer: 65_536,
        receive_buffer: 65_536,
        multipath: Some(MultipathConfig {
            mapping: StreamMapping::Modulo,
            ..MultipathConfig::default()
        }),
        ..AssociationConfig::default()
    };
    MultipathProfile::Pfldnet2010.apply(&mut config);
    let multipath = config.multipath.expect("a multipath profile");
    assert_eq!(multipath.mapping, StreamMapping::Modulo);
    assert_eq!(multipath.sender_splitting, BufferSplitting::Queued);
    assert_eq!((config.send_buffer, config.receive_buffer), (65_536, 65_536));
}

#[test]
fn choices_based_on_a_fit_are_marked() {
    let choices = MultipathProfile::Pfldnet2010.choices();
    assert!(choices.iter().all(|choice| !choice.name.is_empty() && !choice.source.is_empty()));
    assert_eq!(choices.iter().filter(|choice| choice.fitted).count(), 2);
}
