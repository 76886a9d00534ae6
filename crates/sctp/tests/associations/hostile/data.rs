//! Data that contradicts itself, or that there is no room for (RFC 9260 §6.2, §6.9).

use super::*;

/// The cause "protocol violation".
const VIOLATION: Option<u16> = Some(13);

#[test]
fn fragments_that_contradict_each_other_end_the_association() {
    let cases: [fn(&Liar) -> Vec<Chunk>; 4] = [
        |liar| vec![liar.data(0, 0, "b", "a"), liar.data(1, 1, "b", "b")],
        |liar| vec![liar.data(0, 0, "b", "a"), liar.data(1, 7, "e", "b")],
        |liar| vec![liar.data(0, 0, "e", "a")],
        |liar| vec![liar.data(2, 0, "", "c"), liar.data(1, 0, "e", "b")],
    ];
    for case in cases {
        let mut liar = Liar::plain();
        let chunks = case(&liar);
        liar.says(&chunks);
        assert_eq!(liar.aborted_with(), VIOLATION);
        assert_eq!(liar.answers(), ["ABORT"]);
        assert_eq!(liar.counters().inconsistent_data, 1);
    }
}

#[test]
fn fragments_of_i_data_that_overlap_end_the_association() {
    let cases: [fn(&Liar) -> Vec<Chunk>; 4] = [
        |liar| vec![liar.i_data(0, (0, 0), "b", "a"), liar.i_data(1, (0, 0), "b", "b")],
        |liar| vec![liar.i_data(1, (0, 3), "", "a"), liar.i_data(2, (0, 3), "", "b")],
        |liar| vec![liar.i_data(1, (0, 3), "e", "a"), liar.i_data(2, (0, 4), "", "b")],
        |liar| vec![liar.i_data(0, (0, 5), "", "a")],
    ];
    for case in cases {
        let mut liar = Liar::new(|_| {});
        let chunks = case(&liar);
        liar.says(&chunks);
        assert_eq!(liar.aborted_with(), VIOLATION);
        assert_eq!(liar.counters().inconsistent_data, 1);
    }
}

#[test]
fn empty_data_and_the_wrong_kind_end_the_association() {
    let mut liar = Liar::new(|_| {});
    liar.says(&[liar.i_data(0, (0, 0), "be", "")]);
    assert_eq!(liar.aborted_with(), Some(9));
    let mut liar = Liar::new(|_| {});
    liar.says(&[liar.data(0, 0, "be", "x")]);
    assert_eq!(liar.aborted_with(), VIOLATION);
    let mut liar = Liar::plain();
    liar.says(&[liar.i_data(0, (0, 0), "be", "x")]);
    assert_eq!(liar.aborted_with(), VIOLATION);
}

#[test]
fn the_window_is_not_overrun() {
    let mut liar = Liar::new(|config| config.receive_buffer = 20_000);
    liar.world.hosts[B].reads = false;
    for n in 0..1000 {
        liar.says(&[liar.i_data(n, (n, 0), "ube", vec![7; 1000])]);
    }
    assert!(liar.is_up());
    assert_eq!(liar.counters().data_over_window, 980);
    let sack = liar.sack();
    assert_eq!((sack.a_rwnd, sack.cumulative_tsn), (0, liar.next.plus(19)));
    let now = liar.world.now;
    liar.world.hosts[B].read(now);
    assert_eq!(liar.world.hosts[B].received_bytes(), 20_000);
}

#[test]
fn tiny_fragments_fill_the_window_by_what_they_cost() {
    for interleaving in [false, true] {
        let mut liar = Liar::new(|config| {
            config.receive_buffer = 100_000;
            config.extensions.interleaving = interleaving;
        });
        let per_packet = 50;
        for packet in 0..2000 {
            let chunks: Vec<Chunk> = (0..per_packet)
                .map(|n| 1 + packet * per_packet + n)
                .map(|ahead| match interleaving {
                    true => liar.i_data(ahead, (0, ahead), "", "x"),
                    false => liar.data(ahead, 0, "", "x"),
                })
                .collect();
            liar.says(&chunks);
        }
        assert!(liar.is_up());
        let taken = 100_000 - liar.counters().data_over_window;
        assert!(taken < 2000, "{taken} fragments of one byte are held");
        assert_eq!(liar.sack().a_rwnd, 0);
    }
}

#[test]
fn streams_that_are_not_there_are_refused_one_by_one() {
    let mut liar = Liar::new(|config| config.max_inbound_streams = 10);
    for n in 0..100 {
        let mut data = liar.fragment(n, Order::Mid { mid: Mid(0), fsn: 0 }, "be", "x".into());
        data.stream = StreamId(10 + n as u16);
        liar.says(&[Chunk::Data(data)]);
    }
    assert_eq!(liar.sack().cumulative_tsn, liar.next.plus(99));
    assert!(liar.is_up());
    assert_eq!(liar.counters().inconsistent_data, 100);
    assert!(liar.answers().iter().any(|answer| answer.contains("ERROR")));
}

#[test]
fn data_from_far_ahead_is_not_taken() {
    let mut liar = Liar::new(|_| {});
    for ahead in [70_000, 1 << 20, 1 << 30] {
        liar.says(&[liar.i_data(ahead, (0, 0), "ube", "x")]);
    }
    assert_eq!(liar.counters().data_over_window, 3);
    liar.works();
}
