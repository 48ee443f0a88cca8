use super::super::stream::{Arrival, CaptureClock, Window};

#[test]
fn packets_that_come_again_or_too_late_are_recognised() {
    let mut window = Window::new(65_530, 100);
    let taken: Vec<_> = [65_532, 65_531, 65_532, 2, 65_530, 1, 1, 300, 40, 300]
        .into_iter()
        .zip(101..)
        .map(|(sequence, nonce)| window.record_packet(sequence, nonce))
        .collect();
    use Arrival::{Duplicate, Late, Newest, Overtaken};
    let expected = [Newest, Overtaken, Duplicate, Newest, Duplicate, Overtaken, Duplicate, Newest, Late, Duplicate];
    assert_eq!(taken, expected);
}

#[test]
fn packets_that_are_missing_before_another_are_counted() {
    let window = Window::new(65_530, 0);
    let skipped = [65_531, 65_533, 65_530, 65_529, 3, 30_000].map(|sequence| window.skipped_by(sequence));
    assert_eq!(skipped, [0, 2, 0, 0, 8, 0]);
}

#[test]
fn the_window_remembers_exactly_what_came() {
    let mut window = Window::new(0, 0);
    for step in [1_u16, 3, 63, 64, 65, 127, 128] {
        let mut sequence = 0_u16;
        let mut window_of_step = Window::new(0, 0);
        for nonce in 1..20 {
            sequence = sequence.wrapping_add(step);
            assert_eq!(window_of_step.record_packet(sequence, nonce), Arrival::Newest);
        }
        for behind in 0..256_u16 {
            let expected = if behind % step == 0 { Arrival::Duplicate } else { Arrival::Overtaken };
            if u32::from(behind) <= 19 * u32::from(step) {
                assert_eq!(
                    window_of_step.record_packet(sequence.wrapping_sub(behind), 0),
                    expected,
                    "{behind} behind, step {step}"
                );
            }
        }
    }
    assert_eq!(window.record_packet(20_000, 1), Arrival::Newest);
    assert_eq!(window.record_packet(19_999, 2), Arrival::Overtaken);
}

#[test]
fn a_client_that_begins_again_is_followed_but_a_recording_is_not() {
    let mut window = Window::new(20_000, 100);
    assert_eq!(window.record_packet(10_000, 101), Arrival::Late);
    assert_eq!(window.record_packet(10_001, 102), Arrival::Restarted);
    assert_eq!(window.record_packet(10_002, 103), Arrival::Newest);

    let mut window = Window::new(20_000, 100);
    assert_eq!(window.record_packet(10_000, 50), Arrival::Late);
    assert_eq!(window.record_packet(10_001, 51), Arrival::Late);
    assert_eq!(window.record_packet(10_002, 52), Arrival::Late);
}

#[test]
fn the_capture_clock_goes_on_over_the_wrap() {
    let mut clock = CaptureClock::new(u32::MAX - 2_000);
    let at = |frames: i64| (i64::from(u32::MAX - 2_000) + 960 * frames) as u32;
    let numbers: Vec<_> = [0, 1, 3, 2, 4, -50, 1_000_000].into_iter().map(|frames| clock.number(at(frames))).collect();
    assert_eq!(numbers, [50, 51, 53, 52, 54, 0, 1_000_050].map(Some));
    assert_eq!(clock.number(at(-51)), None);
}

#[test]
fn timestamps_between_frames_are_rounded() {
    let mut clock = CaptureClock::new(1_000);
    assert_eq!([1_010, 1_950, 1_970, 2_400].map(|timestamp| clock.number(timestamp)), [50, 51, 51, 51].map(Some));
}
