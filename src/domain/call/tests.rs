//! What happens in a call, as tables.

use super::playback::{Patience, Piece, SPOKEN_FRAME};
use super::*;
use crate::id::{CompanionId, Ticket};
use crate::message::Role;
use crate::moment::Moment;
use crate::voice::speech::Stretch;

const MOST: usize = 2;

fn user(name: &str) -> PersonId {
    PersonId::from(name)
}

fn author(name: &str) -> Author {
    Author { id: name.into(), name: name.into(), role: Role::Person }
}

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// A call at the time `now`.
#[derive(Default)]
struct Scene {
    call: CallState,
    now: Duration,
    opted_out: Vec<&'static str>,
    is_used_up: bool,
}

impl Scene {
    /// Handles an input this long after the one before.
    fn after(&mut self, pause: f64, input: Input) -> Vec<Effect> {
        self.now += secs(pause);
        let world = World {
            now: self.now,
            at: Moment::ZERO + self.now,
            patience: Patience { first_audio: secs(5.0), more: secs(2.0) },
            is_opted_out: &|user: &PersonId| self.opted_out.contains(&user.as_str()),
            is_used_up: &|_: &CompanionId| self.is_used_up,
        };
        self.call.handle(input, &world)
    }

    fn handle(&mut self, input: Input) -> Vec<Effect> {
        self.after(0.0, input)
    }

    /// A person enters with a microphone. Returns the connection.
    fn enter(&mut self, name: &str) -> u64 {
        let line = self.call.enter(author(name), true, MOST).unwrap().0;
        self.handle(Input::Entered { user: user(name) });
        line
    }

    fn part(&mut self, line: u64, gone: Gone) -> Vec<Effect> {
        self.handle(Input::Parted { line, gone })
    }

    fn act(&mut self, line: u64, action: PersonAction) -> Vec<Effect> {
        self.handle(Input::Acted { line, action })
    }

    /// A person begins or stops to talk.
    fn talk(&mut self, name: &str, talks: bool) {
        let at = Moment::ZERO + self.now;
        let pulse = match talks {
            true => Pulse::Started { started: at, until: at },
            false => Pulse::Ended(Stretch { started: at, ended: at, voiced: Duration::ZERO }),
        };
        self.handle(Input::Pulse { user: user(name), pulse });
    }

    fn reply(&mut self, ticket: u64, aloud: Aloud) -> Vec<Effect> {
        self.handle(Input::Conversation(CallEffect::Reply { ticket: Ticket(ticket), turn: None, aloud }))
    }

    /// Aria has a sentence to speak. Returns the number of the reply.
    fn prepare(&mut self) -> u64 {
        self.handle(Input::Conversation(CallEffect::Restarted { people: Vec::new() }));
        self.reply(7, Aloud::Prepare { companion: "aria".into() });
        let made = self.reply(7, Aloud::Say { sentence: 0, text: "Hello.".into() });
        let number = made.iter().find_map(|effect| match effect {
            Effect::Synthesise { reply, .. } => Some(*reply),
            _ => None,
        });
        number.expect("audio is asked for")
    }

    /// Aria speaks a sentence of so many seconds. Returns the number of the reply.
    fn speak(&mut self, seconds: usize) -> u64 {
        let (reply, sentence) = (self.prepare(), 0);
        let samples = vec![0; seconds * 50 * SPOKEN_FRAME];
        self.handle(Input::Audio { reply, sentence, piece: Some(Piece::Audio(samples)) });
        self.handle(Input::Audio { reply, sentence, piece: None });
        self.reply(7, Aloud::Start { sentence });
        self.reply(7, Aloud::Play(interruption::Effect::Speak));
        reply
    }

    fn people(&self) -> Vec<String> {
        self.call.people().map(|person| person.user.as_str().to_owned()).collect()
    }
}

/// The views that everybody is shown.
fn shown(effects: &[Effect]) -> Vec<&View> {
    effects.iter().filter_map(|effect| if let Effect::Show(Audience::All, view) = effect { Some(view) } else { None }).collect()
}

fn reported(effects: &[Effect]) -> Vec<&Notice> {
    effects.iter().filter_map(|effect| if let Effect::Notice(notice) = effect { Some(notice) } else { None }).collect()
}

#[test]
fn a_call_takes_so_many_people_and_each_again() {
    let mut scene = Scene::default();
    let ana = scene.enter("ana");
    scene.enter("ben");

    assert_eq!(scene.call.enter(author("cleo"), true, MOST), None);
    assert!(scene.call.enter(author("ana"), false, MOST).is_some(), "a second connection");
    scene.part(ana, Gone::Left);
    assert_eq!(scene.people(), ["ana", "ben"], "one connection is left");
}

#[test]
fn the_newest_connection_has_the_microphone() {
    let mut scene = Scene::default();
    let first = scene.enter("ana");
    scene.act(first, PersonAction::Muted(true));

    let (second, moved) = scene.call.enter(author("ana"), true, MOST).unwrap();

    assert_eq!(moved, Some(first));
    assert!(!scene.call.person(&user("ana")).unwrap().is_muted);
    assert!(scene.call.microphone(first).is_none() && scene.call.microphone(second).is_some());
    assert_eq!(scene.part(first, Gone::Lost), [], "it was removed before");
    assert_eq!(scene.act(first, PersonAction::Muted(true)), []);
}

#[test]
fn who_is_gone_is_removed_after_a_while_and_not_before() {
    let cases = [(Gone::Lost, 9.9, false), (Gone::Lost, 10.0, true), (Gone::Left, 1.9, false), (Gone::Left, 2.0, true)];
    for (gone, pause, is_removed) in cases {
        let mut scene = Scene::default();
        let ana = scene.enter("ana");
        let parted = scene.part(ana, gone);
        let wait = if gone == Gone::Lost { KEPT_FOR } else { LINGERS_FOR };
        assert!(parted.contains(&away_after(wait, &user("ana"))), "{parted:?}");

        let effects = scene.after(pause, Input::Away { user: user("ana") });

        assert_eq!(effects.contains(&Effect::Remove(user("ana"))), is_removed, "{gone:?} for {pause} s: {effects:?}");
        assert_eq!(scene.call.count() == 0, is_removed);
        // The channel journals by itself that somebody is lost.
        assert_eq!(effects.contains(&Effect::ForgetRecord(user("ana"))), is_removed && gone == Gone::Lost);
    }
}

#[test]
fn who_is_back_in_time_stays() {
    let mut scene = Scene::default();
    let ana = scene.enter("ana");
    scene.part(ana, Gone::Lost);
    scene.enter("ana");

    assert_eq!(scene.after(20.0, Input::Away { user: user("ana") }), []);
    assert!(scene.call.is_connected(&user("ana")));
}

#[test]
fn nobody_is_removed_whose_last_words_are_being_journaled() {
    let mut scene = Scene::default();
    let ana = scene.enter("ana");
    scene.call.buffer(&user("ana")).unwrap().journaling = 1;
    scene.part(ana, Gone::Left);

    assert_eq!(scene.after(2.0, Input::Away { user: user("ana") }), [away_after(LINGERS_FOR, &user("ana"))]);
    scene.call.buffer(&user("ana")).unwrap().journaling = 0;
    assert!(scene.after(2.0, Input::Away { user: user("ana") }).contains(&Effect::Remove(user("ana"))));
}

#[test]
fn an_entrance_that_is_over_again_is_not_reported() {
    let mut scene = Scene::default();
    let ana = scene.call.enter(author("ana"), true, MOST).unwrap().0;
    scene.part(ana, Gone::Lost);

    assert_eq!(scene.handle(Input::Entered { user: user("ana") }), []);
}

#[test]
fn a_lost_microphone_ends_the_speech_and_another_connection_does_not() {
    let mut scene = Scene::default();
    let microphone = scene.enter("ana");
    let page = scene.call.enter(author("ana"), false, MOST).unwrap().0;
    let muted = Notice::Call(utterance::Input::Muted { user: user("ana") });

    let without = scene.part(page, Gone::Lost);
    let with = scene.part(microphone, Gone::Lost);

    assert!(!without.contains(&Effect::StopSpeech(user("ana"))) && !reported(&without).contains(&&muted));
    assert!(with.contains(&Effect::StopSpeech(user("ana"))) && reported(&with).contains(&&muted));
    assert!(reported(&with).contains(&&Notice::Call(utterance::Input::SocketLost { user: user("ana") })));
}

#[test]
fn only_what_changes_is_shown() {
    let mut scene = Scene::default();
    let ana = scene.enter("ana");
    let is_shown = |effects: Vec<Effect>| shown(&effects).iter().any(|view| matches!(view, View::Changed(_)));

    let actions = [
        (PersonAction::Muted(false), false),
        (PersonAction::Muted(true), true),
        (PersonAction::Muted(true), false),
        (PersonAction::Ignored(false), false),
        (PersonAction::Ignored(true), true),
        (PersonAction::Ignored(true), false),
    ];
    for (action, expected) in actions {
        assert_eq!(is_shown(scene.act(ana, action.clone())), expected, "{action:?}");
    }
}

#[test]
fn what_was_heard_of_who_opts_out_is_forgotten() {
    for is_in_guild in [false, true] {
        let mut scene = Scene::default();
        let ana = scene.enter("ana");
        scene.call.microphone(ana).unwrap().1.push_packet(ana, 0, &[0]);
        let effects = if is_in_guild {
            scene.opted_out.push("ana");
            scene.handle(Input::OptOutChanged { user: user("ana") })
        } else {
            scene.act(ana, PersonAction::Ignored(true))
        };

        assert!(scene.call.buffer(&user("ana")).unwrap().take_packets().is_empty());
        assert!(effects.contains(&Effect::ForgetWords(user("ana"))));
        assert!(reported(&effects).contains(&&Notice::Call(utterance::Input::OptedOut { user: user("ana") })));
        assert_eq!(scene.act(ana, PersonAction::Say("hello".into())), []);
    }
}

#[test]
fn a_person_says_one_text_at_a_time() {
    let mut scene = Scene::default();
    let ana = scene.enter("ana");
    let say = |words: usize| PersonAction::Say(vec!["word"; words].join(" ").into());
    let trouble = |trouble| vec![Effect::Show(Audience::Person(user("ana")), View::Trouble(trouble))];

    assert_eq!(scene.act(ana, say(501)), trouble(Trouble::SaysTooMuch));
    assert!(matches!(scene.act(ana, say(1))[..], [Effect::Say(..)]));
    assert_eq!(scene.act(ana, say(1)), trouble(Trouble::SaysAlready));
    scene.handle(Input::SaidAll { user: user("ana") });
    assert!(matches!(scene.act(ana, say(1))[..], [Effect::Say(..)]));
}

#[test]
fn who_began_last_takes_the_stream_of_who_began_first() {
    let mut scene = Scene::default();
    for name in ["ana", "ben", "cleo"] {
        scene.call.enter(author(name), true, 3).unwrap();
        scene.now += secs(1.0);
        scene.talk(name, true);
    }
    let mut open = |name: &str| scene.call.open_stream(&user(name), 2, scene.now);

    assert_eq!([open("ana"), open("ben")], [Some(None), Some(None)]);
    assert_eq!(open("cleo"), Some(Some(user("ana"))));
    assert_eq!(open("ana"), None, "the others began later");
}

#[test]
fn a_stream_that_nobody_needs_is_taken_first() {
    let mut scene = Scene::default();
    for (name, talks_on) in [("ana", true), ("ben", false), ("cleo", true)] {
        scene.call.enter(author(name), true, 3).unwrap();
        scene.now += secs(1.0);
        scene.talk(name, true);
        if !talks_on {
            scene.talk(name, false);
        }
    }
    let mut open = |name: &str| scene.call.open_stream(&user(name), 2, scene.now);
    assert_eq!([open("ana"), open("ben")], [Some(None), Some(None)]);

    assert_eq!(open("cleo"), Some(Some(user("ben"))));
}

#[test]
fn everybody_is_sent_out_at_the_limit_which_then_begins_anew() {
    let mut scene = Scene::default();
    let (ana, ben) = (scene.enter("ana"), scene.enter("ben"));
    let limit = secs(60.0);

    assert_eq!(scene.after(59.0, Input::Limit { limit }), [Effect::After(secs(1.0), Input::Limit { limit })]);
    let effects = scene.after(1.0, Input::Limit { limit });

    let too_long = View::Trouble(Trouble::CallTooLong);
    assert_eq!(effects[0], Effect::Show(Audience::Lines(vec![ana, ben]), too_long));
    for line in [ana, ben] {
        assert!(effects.contains(&Effect::Disconnect(line, Some(End::Ended))), "{effects:?}");
    }
    assert_eq!(effects.last(), Some(&Effect::After(limit, Input::Limit { limit })));
    assert_eq!(scene.people(), [] as [&str; 0]);
}

#[test]
fn a_new_actor_finds_everybody_again() {
    let mut scene = Scene::default();
    let (ana, _) = (scene.enter("ana"), scene.enter("ben"));
    scene.part(ana, Gone::Lost);
    scene.speak(1);

    let effects = scene.handle(Input::Started);

    for name in ["ana", "ben"] {
        assert!(effects.contains(&Effect::Hear(user(name))), "{effects:?}");
    }
    let reported = reported(&effects);
    assert!(reported.contains(&&Notice::Call(utterance::Input::SocketLost { user: user("ana") })));
    assert!(reported.contains(&&Notice::Call(utterance::Input::Joined { user: user("ben") })));
    assert!(effects.contains(&away_after(KEPT_FOR, &user("ana"))));
    assert_eq!(scene.call.reply(), None, "what it played is lost");
    assert_eq!(scene.reply(7, Aloud::Prepare { companion: "aria".into() }), [], "the channel does not know it yet");
}

#[test]
fn the_position_of_a_talker_counts_else_the_one_furthest_behind() {
    let mut scene = Scene::default();
    let (ana, ben) = (scene.enter("ana"), scene.enter("ben"));
    scene.speak(5);
    scene.after(4.0, Input::Tick);
    let played = |scene: &mut Scene, line, reply, position| {
        let effects = scene.act(line, PersonAction::Played { reply, position: secs(position) });
        reported(&effects).into_iter().find_map(|notice| match notice {
            Notice::Reply { told: interruption::Input::Played { position }, .. } => Some(position.as_secs_f64()),
            _ => None,
        })
    };

    assert_eq!(played(&mut scene, ana, 7, 2.0), Some(2.0));
    assert_eq!(played(&mut scene, ben, 7, 1.0), Some(1.0), "the one furthest behind");
    assert_eq!(played(&mut scene, ben, 6, 0.5), None, "another reply");
    scene.talk("ana", true);
    assert_eq!(played(&mut scene, ben, 7, 1.5), Some(2.0), "that of who talks");
    scene.part(ana, Gone::Lost);
    assert_eq!(played(&mut scene, ben, 7, 1.6), Some(1.6), "a lost connection plays nothing");
    assert_eq!(played(&mut scene, ben, 7, 60.0), Some(4.1), "no more than was sent");
}

#[test]
fn who_enters_during_a_reply_is_shown_what_is_going_on() {
    let mut scene = Scene::default();
    scene.enter("ana");
    scene.speak(5);
    scene.talk("ana", true);
    scene.reply(7, Aloud::Play(interruption::Effect::Duck));
    scene.reply(7, Aloud::Play(interruption::Effect::Pause));
    let ben = scene.call.enter(author("ben"), true, MOST).unwrap().0;

    let effects = scene.handle(Input::Entered { user: user("ben") });

    let views: Vec<_> = effects
        .iter()
        .filter_map(|effect| if let Effect::Show(Audience::Lines(lines), view) = effect { Some((lines[0], view)) } else { None })
        .collect();
    assert!(
        matches!(
            views[..],
            [
                (first, View::Entered { .. }),
                (_, View::Speaking { reply: 7, .. }),
                (_, View::Duck(7, true)),
                (_, View::Flush(7))
            ] if first == ben
        ),
        "{views:?}"
    );
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Show(Audience::Others(_), View::Joined(_)))));
}

#[test]
fn what_happens_while_the_beginning_of_a_reply_is_journaled_counts_once_it_begins() {
    let (mut ducked, mut paused) = (Scene::default(), Scene::default());
    let play = |effect| Aloud::Play(effect);

    ducked.prepare();
    ducked.reply(7, play(interruption::Effect::Duck));
    let begun = ducked.reply(7, play(interruption::Effect::Speak));
    assert_eq!(shown(&begun).last(), Some(&&View::Duck(7, true)));

    paused.prepare();
    let held = paused.reply(7, play(interruption::Effect::Pause));
    let begun = paused.reply(7, play(interruption::Effect::Resume { from: Duration::ZERO }));
    assert_eq!(shown(&held), [] as [&View; 0]);
    assert!(matches!(shown(&begun)[..], [View::Speaking { reply: 7, from: Duration::ZERO, .. }]), "{begun:?}");
}

#[test]
fn audio_of_an_earlier_reply_does_not_count() {
    let mut scene = Scene::default();
    let first = scene.speak(1);
    scene.reply(8, Aloud::Prepare { companion: "aria".into() });

    assert_eq!(scene.handle(Input::AudioFailed { reply: first, sentence: 0 }), []);
    assert!(!scene.call.voices_fail());
}

#[test]
fn a_voice_fails_until_there_is_audio_again() {
    let dropped = Aloud::Play(interruption::Effect::SentenceDropped { sentence: 0 });
    // The service fails, or returns nothing in time.
    for has_failed in [true, false] {
        let mut scene = Scene::default();
        let reply = scene.prepare();
        let mut effects = Vec::new();
        if has_failed {
            effects.extend(scene.handle(Input::AudioFailed { reply, sentence: 0 }));
        }
        effects.extend(scene.reply(7, dropped.clone()));
        effects.extend(scene.handle(Input::AudioFailed { reply, sentence: 0 }));

        let troubles = shown(&effects).into_iter().filter(|view| matches!(view, View::Trouble(_)));
        assert_eq!(troubles.collect::<Vec<_>>(), [&View::Trouble(Trouble::SynthesisFailed)]);
        assert!(effects.contains(&Effect::GiveUpAudio { reply, sentence: 0 }) && scene.call.voices_fail());

        scene.speak(1);

        assert!(!scene.call.voices_fail());
    }
}

#[test]
fn nothing_is_made_for_a_guild_that_has_used_up_its_day() {
    let mut scene = Scene { is_used_up: true, ..Scene::default() };
    scene.handle(Input::Conversation(CallEffect::Restarted { people: Vec::new() }));
    let prepared = scene.reply(7, Aloud::Prepare { companion: "aria".into() });
    assert!(shown(&prepared).contains(&&View::Trouble(Trouble::SynthesisUsedUp)));

    let effects = scene.reply(7, Aloud::Say { sentence: 0, text: "Hello.".into() });

    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Synthesise { .. })), "{effects:?}");
    let stall = Notice::Reply { ticket: Ticket(7), told: interruption::Input::Stall };
    assert!(reported(&effects).contains(&&stall));
    assert!(!scene.call.voices_fail());
}

#[test]
fn only_what_plays_to_all_can_be_silenced() {
    let mut scene = Scene::default();
    let ana = scene.enter("ana");
    let speaker = scene.call.attach();

    assert_eq!(scene.act(ana, PersonAction::Silenced(true)), []);
    assert_eq!(scene.act(speaker, PersonAction::Silenced(true)), [Effect::Notice(Notice::Silenced(true))]);
    let restarted = scene.handle(Input::Conversation(CallEffect::Restarted { people: Vec::new() }));
    assert!(restarted.contains(&Effect::Notice(Notice::Silenced(true))), "the call remembers it");
    assert_eq!(scene.part(speaker, Gone::Lost), [Effect::Disconnect(speaker, None)]);
}
