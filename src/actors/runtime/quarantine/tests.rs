use super::*;

#[test]
fn a_guild_is_restarted_as_a_whole_once() {
    let mut quarantine = over_limit(0);

    let ruling = quarantine.over_limit(&guild(), "boom", at(0));

    assert_eq!(ruling, Ruling::RestartWhole);
    assert_eq!(quarantine.list().count(), 0);
}

#[test]
fn the_second_time_it_is_quarantined_and_listed() {
    let mut quarantine = over_limit(1);

    let ruling = quarantine.over_limit(&guild(), "boom again", at(10));

    assert_eq!(ruling, Ruling::Quarantine { until: at(70) });
    let listed: Vec<_> = quarantine.list().cloned().collect();
    let entry = Quarantined { guild: guild(), reason: "boom again".to_owned(), since: at(10), until: at(70), times: 1 };
    assert_eq!(listed, [entry]);
}

#[test]
fn each_further_quarantine_doubles_up_to_the_longest() {
    let (mut quarantine, mut now) = (over_limit(1), at(0));
    let mut lasted = Vec::new();

    for _ in 0..5 {
        let Ruling::Quarantine { until } = quarantine.over_limit(&guild(), "boom", now) else { panic!("restarted") };
        lasted.push(until.since(now).as_secs());
        now = until;
        assert_eq!(quarantine.take_due(now), [guild()]);
    }

    assert_eq!(lasted, [60, 120, 240, 300, 300]);
}

#[test]
fn a_quarantine_ends_once_and_not_before_its_time() {
    let mut quarantine = over_limit(2);

    assert!(quarantine.take_due(at(59)).is_empty());
    assert_eq!(quarantine.take_due(at(60)), [guild()]);
    assert!(quarantine.take_due(at(61)).is_empty());
}

#[test]
fn a_released_guild_has_no_history() {
    let mut quarantine = over_limit(2);

    let released = quarantine.release(&guild());

    assert_eq!(released.map(|entry| entry.guild), Some(guild()));
    assert_eq!(quarantine.get(&guild()), None);
    assert_eq!(quarantine.over_limit(&guild(), "boom", at(1)), Ruling::RestartWhole);
}

#[test]
fn a_guild_that_is_not_in_quarantine_cannot_be_released() {
    let mut quarantine = over_limit(1);

    assert_eq!(quarantine.release(&guild()), None);
    assert!(matches!(quarantine.over_limit(&guild(), "boom", at(1)), Ruling::Quarantine { .. }));
}

#[test]
fn after_a_time_without_failures_the_history_is_dropped() {
    let mut quarantine = over_limit(1);

    let ruling = quarantine.over_limit(&guild(), "boom", at(3_600));

    assert_eq!(ruling, Ruling::RestartWhole);
}

#[test]
fn a_long_reason_is_cut() {
    let mut quarantine = over_limit(1);

    quarantine.over_limit(&guild(), &"ä".repeat(1_000), at(0));

    assert_eq!(quarantine.get(&guild()).map(|entry| entry.reason.chars().count()), Some(LONGEST_REASON));
}

/// The guild was over its limit so many times at the beginning.
fn over_limit(times: usize) -> Quarantine {
    let [first, longest, forget_after] = [60, 300, 3_600].map(Duration::from_secs);
    let mut quarantine = Quarantine::new(QuarantinePolicy { first, longest, forget_after });
    for _ in 0..times {
        quarantine.over_limit(&guild(), "boom", at(0));
    }
    quarantine
}

fn guild() -> GuildId {
    GuildId::from("home")
}

fn at(secs: u64) -> Moment {
    Moment::from_micros(secs * 1_000_000)
}
