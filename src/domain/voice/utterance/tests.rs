use super::super::segment::Kind;
use super::*;
use crate::id::Seq;
use crate::samples::at;

mod properties;

/// One companion with the usual timeouts. Nobody is handed over early, because the tests of the lull want to see it.
fn lull_only() -> Policy {
    Policy { address_timeout: secs(5.0), ..usual(&[("aria", 5.0)]) }
}

fn usual(companions: &[(&str, f64)]) -> Policy {
    Policy {
        companions: companions.iter().map(|(companion, timeout)| ((*companion).into(), secs(*timeout))).collect(),
        default_timeout: secs(5.0),
        address_timeout: secs(1.0),
        follow_up: secs(10.0),
    }
}

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// A call whose effects are written down, each with its time.
struct Call {
    utterances: Utterances,
    policy: Policy,
    seq: u64,
    log: Vec<String>,
}

impl Call {
    /// A call with people in it.
    fn new(policy: Policy, people: &[&str]) -> Self {
        let mut call = Self { utterances: Utterances::default(), policy, seq: 0, log: Vec::new() };
        for user in people {
            call.input(0.0, Input::Joined { user: (*user).into() });
        }
        call
    }

    fn input(&mut self, time: f64, input: Input) -> &mut Self {
        self.until(at(time) - Duration::from_micros(1));
        let effects = self.utterances.handle(at(time), input, &self.policy);
        self.note(at(time), effects);
        self
    }

    /// Handles all deadlines up to a moment, each in its time.
    fn until(&mut self, end: Moment) {
        while let Some(deadline) = self.utterances.deadline(&self.policy).filter(|deadline| deadline.at <= end) {
            let effects = self.utterances.wake(deadline.at, &self.policy);
            self.note(deadline.at, effects);
        }
    }

    fn starts(&mut self, time: f64, user: &str) -> &mut Self {
        self.input(time, Input::Started { user: user.into(), started: at(time) })
    }

    fn ends(&mut self, time: f64, user: &str) -> &mut Self {
        self.input(time, Input::Ended { user: user.into(), ended: at(time) })
    }

    /// Talk from one time to another.
    fn talks(&mut self, from: f64, to: f64, user: &str) -> &mut Self {
        self.starts(from, user).ends(to, user)
    }

    fn partial(&mut self, time: f64, user: &str) -> &mut Self {
        self.input(time, Input::Partial { user: user.into() })
    }

    /// The final of speech that lasted from `started` to `ended`. A text with "aria" in it addresses her.
    fn says(&mut self, time: f64, user: &str, text: &str, (started, ended): (f64, f64)) -> &mut Self {
        self.hears(time, user, text, (started, ended), Kind::Words)
    }

    fn hears(&mut self, time: f64, user: &str, text: &str, (started, ended): (f64, f64), kind: Kind) -> &mut Self {
        self.receives(time, user, text, (started, ended), kind, false)
    }

    /// Words were typed to be said.
    fn types(&mut self, time: f64, user: &str, text: &str, (started, ended): (f64, f64)) -> &mut Self {
        self.receives(time, user, text, (started, ended), Kind::Words, true)
    }

    fn receives(
        &mut self,
        time: f64,
        user: &str,
        text: &str,
        (started, ended): (f64, f64),
        kind: Kind,
        is_typed: bool,
    ) -> &mut Self {
        self.seq += 1;
        let addressed = if text.contains("aria") { vec!["aria".into()] } else { Vec::new() };
        let (started, ended) = (at(started), at(ended));
        let (seq, from, text) = (Seq(self.seq), user.into(), text.into());
        let segment = Segment { seq, from, text, started, ended, addressed, kind, is_typed };
        self.input(time, Input::Final { user: user.into(), is_last: true, segment: Some(segment) })
    }

    fn empty_final(&mut self, time: f64, user: &str) -> &mut Self {
        self.input(time, Input::Final { user: user.into(), is_last: true, segment: None })
    }

    fn note(&mut self, time: Moment, effects: Vec<Effect>) {
        let time = time.as_secs_f64();
        self.log.extend(effects.iter().map(|effect| format!("{time} {}", shown(effect))));
    }

    /// Everything that happens until nothing is due any more.
    fn effects(&mut self) -> Vec<String> {
        self.until(Moment::from_micros(u64::MAX));
        std::mem::take(&mut self.log)
    }
}

fn shown(effect: &Effect) -> String {
    let list = |companions: &[CompanionId]| companions.iter().map(CompanionId::as_str).collect::<Vec<_>>().join(",");
    match effect {
        Effect::Finalize { user } => format!("finalize {user}"),
        Effect::Quiet { companions } => format!("quiet {}", list(companions)),
        Effect::CountsAsNoise { user } => format!("noise {user}"),
        Effect::Left { user } => format!("left {user}"),
        Effect::Redact { user } => format!("redact {user}"),
        Effect::HandOver(hand_over) => {
            let cause = match &hand_over.cause {
                Cause::LullEnded { .. } => "lull",
                Cause::Deserted { .. } => "deserted",
                Cause::Addressed { .. } => "address",
                Cause::OneToOne { .. } => "one to one",
                Cause::FollowUp { .. } => "follow-up",
                Cause::Extension => "extension",
            };
            let messages = hand_over.messages.iter().map(|spoken| format!("{}: {}", spoken.from, spoken.text));
            let messages = messages.collect::<Vec<_>>().join(" | ");
            let endpoint =
                hand_over.endpoint().map(|(spoken, companions)| format!(" -> {} for {}", spoken.text, list(companions)));
            let talks = if hand_over.somebody_talks { " (somebody talks)" } else { "" };
            format!("{cause} [{messages}]{}{talks}", endpoint.unwrap_or_default())
        }
    }
}

#[test]
fn the_voice_lull_begins_at_the_last_voiced_hop_and_waits_for_finals() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.talks(1.0, 3.0, "ana");

    // The final never comes.
    assert_eq!(call.effects(), ["8 finalize ana", "9 quiet aria"]);
}

#[test]
fn a_final_in_quiet_restarts_the_timer_and_one_during_talk_does_not() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.talks(1.0, 3.0, "ana").says(3.4, "ana", "one", (1.0, 3.0));
    call.talks(4.0, 6.0, "bob").says(5.0, "ana", "two", (3.0, 3.0)).says(6.3, "bob", "three", (4.0, 6.0));

    assert_eq!(call.effects(), ["11.3 lull [ana: one two | bob: three] -> three for aria"]);

    call.talks(20.0, 22.0, "bob").says(21.0, "ana", "late", (19.0, 19.5)).empty_final(21.5, "bob").empty_final(22.0, "bob");
    assert_eq!(call.effects(), ["27 lull [ana: late] -> late for aria"]);
}

#[test]
fn talk_stops_the_timer_until_everybody_is_silent() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.starts(1.0, "ana").starts(2.0, "bob").ends(3.0, "ana").empty_final(3.1, "ana").ends(9.0, "bob").empty_final(9.0, "bob");

    assert_eq!(call.effects(), ["14 quiet aria"]);
}

#[test]
fn a_recogniser_without_a_detector_talks_until_its_final() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.input(1.0, Input::RecogniserStarted { user: "ana".into() });
    assert!(call.utterances.somebody_talks());
    call.says(4.0, "ana", "hi", (1.0, 3.5));

    assert_eq!(call.effects(), ["8.5 lull [ana: hi] -> hi for aria"]);
}

#[test]
fn talk_without_words_counts_as_noise_after_thirty_seconds() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.starts(1.0, "ana").partial(10.0, "ana").talks(12.0, 13.0, "bob").says(13.2, "bob", "hi", (12.0, 13.0));

    let expected = ["40 noise ana", "45 finalize ana", "46 lull [bob: hi] -> hi for aria"];
    assert_eq!(call.effects(), expected);

    // Noise does not hold up the next lull, nor does its offset. Words end it.
    call.talks(50.0, 51.0, "bob").says(51.0, "bob", "one", (50.0, 51.0)).ends(52.0, "ana").empty_final(53.0, "ana");
    assert_eq!(call.effects(), ["58 lull [bob: one] -> one for aria"]);
}

#[test]
fn a_word_ends_noise() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.starts(1.0, "ana").empty_final(20.0, "ana").empty_final(33.0, "ana").says(34.0, "ana", "hello", (33.0, 34.0));

    assert_eq!(call.effects(), ["31 noise ana", "64 noise ana", "69 finalize ana", "70 lull [ana: hello] -> hello for aria"]);
}

#[test]
fn an_empty_final_of_noise_does_not_restart_the_timer() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.starts(1.0, "ana").empty_final(35.0, "ana");

    assert_eq!(call.effects(), ["31 noise ana", "36 quiet aria"]);
}

#[test]
fn a_message_is_one_run_of_one_speaker_by_the_beginning_of_its_segments() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.says(9.0, "bob", "three", (3.0, 4.0)).says(9.1, "ana", "one", (1.0, 2.0)).says(9.2, "ana", "four", (5.0, 6.0));
    call.says(9.3, "ana", " two ", (2.5, 2.8)).says(9.4, "bob", "also three", (3.0, 3.1)).says(9.5, "ana", "same", (5.0, 5.5));

    assert_eq!(call.effects(), ["14.5 lull [ana: one two | bob: three also three | ana: four same] -> four same for aria"]);
}

#[test]
fn noise_and_echo_are_no_messages_and_end_no_run() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.talks(1.0, 2.0, "ana").says(2.1, "ana", "one", (1.0, 2.0));
    call.talks(2.2, 2.4, "bob").hears(2.6, "bob", "uh", (2.2, 2.4), Kind::Noise).hears(2.7, "bob", "one", (2.2, 2.4), Kind::Echo);
    call.talks(3.0, 4.0, "ana").says(4.2, "ana", "two", (3.0, 4.0));

    assert_eq!(call.effects(), ["9.2 lull [ana: one two] -> one two for aria"]);
}

#[test]
fn backchannel_ends_no_lull_but_is_a_message() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.says(1.0, "ana", "well", (0.0, 1.0)).hears(1.5, "bob", "mhm", (1.2, 1.5), Kind::Backchannel);
    assert_eq!(call.effects(), ["6.5 lull [ana: well | bob: mhm] -> well for aria"]);

    // Only backchannel: earlier words may still wait for the lull.
    call.hears(10.0, "bob", "mhm", (9.0, 10.0), Kind::Backchannel);
    assert_eq!(call.effects(), ["15 lull [bob: mhm]", "15 quiet aria"]);
}

#[test]
fn a_gate_with_a_larger_timeout_waits_out_the_rest() {
    let policy = Policy { address_timeout: secs(9.0), ..usual(&[("aria", 5.0), ("mira", 7.0), ("zed", 7.0)]) };
    let mut call = Call::new(policy, &["ana"]);

    call.says(1.0, "ana", "one", (0.0, 1.0));
    assert_eq!(call.effects(), ["6 lull [ana: one] -> one for aria", "8 quiet mira,zed"]);

    // An onset stops it.
    call.says(20.0, "ana", "two", (19.0, 20.0)).talks(26.0, 26.5, "ana").empty_final(26.5, "ana");
    assert_eq!(call.effects(), ["25 lull [ana: two] -> two for aria", "31.5 quiet aria", "33.5 quiet mira,zed"]);
}

#[test]
fn a_companion_that_comes_or_goes_changes_the_running_deadline() {
    let mut call = Call::new(lull_only(), &["ana"]);
    call.says(1.0, "ana", "one", (0.0, 1.0));
    let deadline = |call: &Call| call.utterances.deadline(&call.policy).map(|deadline| (deadline.at, deadline.why));

    assert_eq!(deadline(&call), Some((at(6.0), Why::Lull)));
    call.policy.companions.insert("mira".into(), secs(3.0));
    assert_eq!(deadline(&call), Some((at(4.0), Why::Lull)));
    call.policy.companions.clear();
    assert_eq!(deadline(&call), Some((at(6.0), Why::Lull)));
    assert_eq!(call.effects(), ["6 lull [ana: one] -> one for "]);
}

#[test]
fn the_end_of_a_lull_waits_for_outstanding_finals() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.talks(1.0, 3.0, "ana").says(8.4, "ana", "late", (1.0, 3.0));
    assert_eq!(call.effects(), ["8 finalize ana", "8.4 lull [ana: late] -> late for aria"]);

    // A later one begins a new buffer.
    call.talks(20.0, 21.0, "ana").input(21.5, Input::Finalized { user: "ana".into() });
    call.says(30.0, "ana", "too late", (20.0, 21.0));
    assert_eq!(call.effects(), ["26 quiet aria", "35 lull [ana: too late] -> too late for aria"]);
}

#[test]
fn an_address_is_handed_over_early_without_an_endpoint() {
    let mut call = Call::new(usual(&[("aria", 5.0), ("mira", 5.0)]), &["ana", "bob"]);

    call.talks(1.0, 3.0, "ana").says(3.3, "ana", "aria, hi", (1.0, 3.0));

    assert_eq!(call.effects(), ["3 finalize ana", "4 address [ana: aria, hi]", "8.3 quiet aria,mira"]);
}

#[test]
fn an_early_hand_over_waits_for_the_final_of_its_speaker() {
    let mut call = Call::new(usual(&[("aria", 5.0), ("mira", 5.0)]), &["ana", "bob"]);

    // The person has talked on; the rest is outstanding.
    call.starts(1.0, "ana").says(2.0, "ana", "aria", (1.0, 1.5)).ends(4.0, "ana").says(4.9, "ana", "hi", (2.0, 4.0));
    call.until(at(6.0));
    assert_eq!(std::mem::take(&mut call.log), ["4 finalize ana", "5 address [ana: aria hi]"]);
    // A second after Finalize it is not waited for any longer.
    call.starts(11.0, "ana").says(12.0, "ana", "aria", (11.0, 11.5)).ends(14.0, "ana");
    assert_eq!(call.effects(), ["9.9 quiet aria,mira", "14 finalize ana", "15 address [ana: aria]", "19 quiet aria,mira"]);
    // An offset that is found late leaves two seconds.
    call.starts(21.0, "ana").says(22.0, "ana", "aria", (21.0, 21.5));
    call.input(25.5, Input::Ended { user: "ana".into(), ended: at(24.0) });
    assert_eq!(call.effects(), ["25.5 finalize ana", "26 address [ana: aria]", "29 quiet aria,mira"]);
    // A late final with an address is handed over at once.
    call.says(40.0, "ana", "aria, you", (21.0, 24.0));
    assert_eq!(call.effects(), ["40 address [ana: aria, you]", "45 quiet aria,mira"]);
}

#[test]
fn an_onset_of_the_speaker_cancels_an_early_hand_over() {
    let mut call = Call::new(usual(&[("aria", 5.0), ("mira", 5.0)]), &["ana", "bob"]);

    call.talks(1.0, 3.0, "ana").says(3.3, "ana", "aria", (1.0, 3.0)).starts(3.9, "ana").starts(4.0, "bob");
    call.ends(6.0, "ana").says(6.4, "ana", "hi", (3.9, 6.0)).says(6.5, "bob", "what", (4.0, 5.0)).ends(20.0, "bob");

    let expected = [
        "3 finalize ana",
        "6 finalize ana",
        "7 address [ana: aria hi | bob: what] (somebody talks)",
        "20 finalize bob",
        "25 quiet aria,mira",
    ];
    assert_eq!(call.effects(), expected);
}

#[test]
fn one_person_and_one_companion_need_no_lull() {
    let mut call = Call::new(usual(&[("aria", 5.0)]), &["ana"]);

    call.talks(1.0, 3.0, "ana").says(3.3, "ana", "hi", (1.0, 3.0));
    assert_eq!(call.effects(), ["3 finalize ana", "4 one to one [ana: hi] -> hi for aria", "8.3 quiet aria"]);

    // Backchannel is no reason.
    call.talks(11.0, 13.0, "ana").hears(13.3, "ana", "mhm", (11.0, 13.0), Kind::Backchannel);
    assert_eq!(call.effects(), ["13 finalize ana", "18.3 lull [ana: mhm]", "18.3 quiet aria"]);

    // With two people it needs one.
    call.input(20.0, Input::Joined { user: "bob".into() });
    call.talks(21.0, 23.0, "ana").says(23.3, "ana", "hi", (21.0, 23.0));
    assert_eq!(call.effects(), ["23 finalize ana", "28.3 lull [ana: hi] -> hi for aria"]);
}

#[test]
fn a_follow_up_needs_no_lull() {
    let mut call = Call::new(usual(&[("aria", 5.0), ("mira", 5.0)]), &["ana", "bob"]);
    let replied = |people: &[&str]| Input::Replied {
        companion: "aria".into(),
        people: people.iter().map(|user| (*user).into()).collect(),
        last_frame: at(10.0),
    };

    call.input(10.0, replied(&["ana"]));
    call.talks(20.0, 21.0, "ana").says(21.2, "ana", "and you?", (20.0, 21.0));
    let expected = ["21 finalize ana", "22 follow-up [ana: and you?] -> and you? for aria", "26.2 quiet aria,mira"];
    assert_eq!(call.effects(), expected);

    // It began too late, or somebody else said it.
    call.says(30.0, "ana", "well", (20.1, 29.0)).says(30.0, "bob", "no", (12.0, 13.0));
    assert_eq!(call.effects(), ["35 lull [bob: no | ana: well] -> well for aria,mira"]);

    // The interrupter counts after a cut.
    call.input(40.0, replied(&["ana", "bob"])).says(40.0, "bob", "no", (8.0, 9.0));
    assert_eq!(call.effects(), ["40 follow-up [bob: no] -> no for aria", "45 quiet aria,mira"]);

    call.policy.follow_up = Duration::ZERO;
    call.says(50.0, "bob", "no", (10.0, 10.0));
    assert_eq!(call.effects(), ["55 lull [bob: no] -> no for aria,mira"]);
}

#[test]
fn an_early_hand_over_is_off_if_it_is_not_earlier() {
    for (address_timeout, expected) in [(5.0, "6 lull [ana: aria] -> aria for aria"), (4.9, "4.9 address [ana: aria]")] {
        let policy = Policy { address_timeout: secs(address_timeout), ..usual(&[("aria", 5.0)]) };
        let mut call = Call::new(policy, &["ana", "bob"]);

        call.says(1.0, "ana", "aria", (0.0, 0.0));

        assert_eq!(call.effects()[0], expected, "{address_timeout}");
    }
}

#[test]
fn at_one_moment_the_lull_wins() {
    let policy = Policy { address_timeout: secs(4.0), ..usual(&[("aria", 5.0)]) };
    let mut call = Call::new(policy, &["ana", "bob"]);

    call.says(1.0, "ana", "aria", (1.0, 2.0));

    assert_eq!(call.effects(), ["6 lull [ana: aria] -> aria for aria"]);
}

#[test]
fn voice_messages_left_over_wait_for_the_next_lull() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.input(1.0, Input::LeftUnsettled);
    assert_eq!(call.effects(), ["6 quiet aria"]);

    call.says(10.0, "ana", "one", (9.0, 10.0)).input(12.0, Input::LeftUnsettled);
    assert_eq!(call.effects(), ["15 lull [ana: one] -> one for aria"]);

    call.starts(20.0, "ana").input(21.0, Input::LeftUnsettled).ends(22.0, "ana").empty_final(22.0, "ana");
    assert_eq!(call.effects(), ["27 quiet aria"]);
}

#[test]
fn muting_counts_as_an_offset() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.starts(1.0, "ana").input(3.0, Input::Muted { user: "ana".into() }).says(3.4, "ana", "hi", (1.0, 3.0));

    assert_eq!(call.effects(), ["3 finalize ana", "8.4 lull [ana: hi] -> hi for aria"]);
}

#[test]
fn the_last_person_who_leaves_hands_over() {
    let left = |user: &str| Input::Left { user: user.into() };
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.says(1.0, "bob", "one", (0.0, 1.0)).starts(2.0, "ana").input(3.0, left("bob")).input(4.0, left("ana"));
    call.says(4.5, "ana", "two", (2.0, 4.0)).says(9.0, "ana", "late", (3.0, 4.0));

    let expected =
        ["4 finalize ana", "4.5 deserted [bob: one | ana: two] -> two for aria", "9 deserted [ana: late] -> late for aria"];
    assert_eq!(call.effects(), expected);

    // The final does not come.
    let mut call = Call::new(lull_only(), &["ana"]);
    call.says(1.0, "ana", "one", (0.0, 1.0)).starts(2.0, "ana").input(3.0, Input::CallEnded);
    assert_eq!(call.effects(), ["3 finalize ana", "4 deserted [ana: one] -> one for aria"]);
}

#[test]
fn a_lost_socket_is_gone_after_ten_seconds() {
    let lost = || Input::SocketLost { user: "ana".into() };
    let mut call = Call::new(lull_only(), &["ana"]);

    call.starts(1.0, "ana").input(2.0, lost()).input(3.0, Input::Joined { user: "ana".into() });
    assert_eq!(call.effects(), ["2 finalize ana", "7 quiet aria"]);

    call.policy.companions.insert("aria".into(), secs(60.0));
    call.says(20.0, "ana", "one", (19.0, 20.0)).input(21.0, lost());
    assert_eq!(call.utterances.present().count(), 1);
    let expected = ["25 one to one [ana: one] -> one for aria", "31 left ana", "80 quiet aria"];
    assert_eq!(call.effects(), expected);
    assert_eq!(call.utterances.present().count(), 0);
}

#[test]
fn a_person_who_opts_out_leaves_nothing_behind() {
    let mut call = Call::new(lull_only(), &["ana", "bob"]);

    call.says(1.0, "ana", "secret", (0.0, 1.0)).says(1.0, "bob", "hi", (0.5, 1.0)).starts(2.0, "ana");
    call.input(3.0, Input::OptedOut { user: "ana".into() });
    call.says(4.0, "ana", "more", (2.0, 3.0)).starts(4.0, "ana");
    assert_eq!(call.effects(), ["3 redact ana", "4 redact ana", "8 lull [bob: hi] -> hi for aria"]);

    call.input(10.0, Input::OptedIn { user: "ana".into() }).says(11.0, "ana", "back", (10.0, 11.0));
    assert_eq!(call.effects(), ["16 lull [ana: back] -> back for aria"]);
}

#[test]
fn a_restart_begins_with_the_segments_that_were_not_handed_over() {
    let segment = |seq, text: &str, kind| Segment {
        seq: Seq(seq),
        from: "ana".into(),
        text: text.into(),
        started: at(1.0),
        ended: at(2.0),
        addressed: Vec::new(),
        kind,
        is_typed: false,
    };
    let segments = vec![segment(1, "one", Kind::Words), segment(2, "uh", Kind::Noise), segment(3, "two", Kind::Words)];
    let mut call = Call::new(lull_only(), &[]);

    call.policy.companions.insert("mira".into(), secs(9.0));
    call.utterances = Utterances::restored(segments.clone(), [], BTreeSet::new(), at(100.0));
    assert_eq!(call.effects(), ["105 lull [ana: one two] -> one two for aria,mira"]);

    // With people in the call everybody waits as usual.
    call.policy.companions.remove(&"aria".into());
    call.utterances = Utterances::restored(segments.clone(), ["bob".into(), "cem".into()], BTreeSet::new(), at(200.0));
    assert_eq!(call.effects(), ["209 lull [ana: one two] -> one two for mira"]);

    // The end of the call is no lull, however short a companion's timeout is.
    call.policy.companions.insert("aria".into(), secs(3.0));
    call.utterances = Utterances::restored(segments, [], BTreeSet::new(), at(300.0));
    call.input(304.0, Input::CallEnded);
    assert_eq!(call.effects(), ["304 deserted [ana: one two] -> one two for aria,mira"]);
}

#[test]
fn an_extension_takes_everything_without_an_endpoint() {
    let mut call = Call::new(lull_only(), &["ana"]);
    assert_eq!(call.utterances.hand_over_now(), None);

    call.says(1.0, "ana", "one", (0.0, 1.0));
    let hand_over = call.utterances.hand_over_now().expect("something is buffered");

    assert_eq!(hand_over.endpoint(), None);
    assert_eq!(hand_over.messages[0].segments, [Seq(1)]);
    assert_eq!(call.effects(), ["6 quiet aria"]);
}

#[test]
fn a_text_lull_waits_while_somebody_says_words_or_words_are_buffered() {
    let mut call = Call::new(lull_only(), &["ana"]);

    call.starts(1.0, "ana");
    assert!(!call.utterances.holds_text_lull());
    call.partial(1.5, "ana");
    assert!(call.utterances.holds_text_lull());
    call.says(2.0, "ana", "one", (1.0, 2.0)).ends(2.0, "ana");
    assert!(call.utterances.holds_text_lull());
    call.effects();
    assert!(!call.utterances.holds_text_lull());
}

#[test]
fn a_final_that_reaches_the_last_voiced_hop_is_the_one_that_is_outstanding() {
    let ended = |time| Input::Ended { user: "ana".into(), ended: at(time) };
    let mut call = Call::new(usual(&[("aria", 5.0), ("mira", 5.0)]), &["ana", "bob"]);
    call.starts(1.0, "ana").says(3.1, "ana", "aria, hi", (1.0, 3.0)).input(3.3, ended(3.0));
    assert_eq!(call.effects()[0], "4 address [ana: aria, hi]");

    // One that ends earlier is not.
    call.starts(11.0, "ana").says(12.0, "ana", "aria, hi", (11.0, 12.0)).input(13.3, ended(13.0));
    assert_eq!(call.effects()[..2], ["13.3 finalize ana", "14.3 address [ana: aria, hi]"]);
}

#[test]
fn typed_words_do_not_wait_for_a_noisy_microphone() {
    let policy = || usual(&[("aria", 5.0), ("mira", 5.0)]);
    let noise = |call: &mut Call| {
        for burst in 0..20 {
            call.talks(2.1 + 0.7 * f64::from(burst), 2.3 + 0.7 * f64::from(burst), "ana");
        }
        call.empty_final(16.0, "ana");
        call.effects().into_iter().find(|effect| effect.contains('[')).expect("a hand-over")
    };

    let mut call = Call::new(policy(), &["ana", "bob"]);
    call.says(2.05, "ana", "aria, hi", (1.0, 2.0));
    assert_eq!(noise(&mut call), "16.6 address [ana: aria, hi]");
    call = Call::new(policy(), &["ana", "bob"]);
    call.types(2.05, "ana", "aria, hi", (1.0, 2.0));
    assert_eq!(noise(&mut call), "3 address [ana: aria, hi]");
    // Whom they are for is not known: the lull is as long as it would be in quiet.
    call = Call::new(policy(), &["ana", "bob"]);
    call.types(2.05, "ana", "hi", (1.0, 2.0)).starts(2.1, "bob");
    assert_eq!(call.effects()[0], "7 lull [ana: hi] -> hi for aria,mira (somebody talks)");
}

#[test]
fn typed_words_wait_for_words_that_somebody_says() {
    let mut call = Call::new(usual(&[("aria", 5.0), ("mira", 5.0)]), &["ana", "bob"]);

    call.types(2.1, "ana", "hi", (1.0, 2.0)).starts(3.0, "bob").partial(4.0, "bob");
    call.says(9.0, "bob", "ho", (3.0, 9.0)).ends(9.0, "bob");

    assert_eq!(call.effects()[0], "14 lull [ana: hi | bob: ho] -> ho for aria,mira");
}

#[test]
fn words_of_before_a_restart_wait_for_the_lull() {
    let mut call = Call::new(usual(&[("aria", 5.0)]), &["ana"]);
    call.says(1.0, "ana", "aria, hi", (0.5, 1.0));
    let segments = call.utterances.buffered().to_vec();

    call.utterances = Utterances::restored(segments, ["ana".into()], BTreeSet::new(), at(100.0));

    assert_eq!(call.effects(), ["105 lull [ana: aria, hi] -> aria, hi for aria"]);
}
