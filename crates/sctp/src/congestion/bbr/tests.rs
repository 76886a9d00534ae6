use super::*;

#[test]
fn the_first_pacing_rate_is_the_initial_window_in_a_millisecond_by_the_gain() {
    let bbr = Bbr::new(1500);
    assert_eq!(bbr.window(), 4404);
    assert_eq!(bbr.pacing_rate, 4_404_000 * 277 / 100);
    assert_eq!(bbr.pacing_rate(), None);
}
