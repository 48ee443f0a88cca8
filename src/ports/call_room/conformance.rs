//! The tests that every implementation of [`CallRooms`] has to pass. A companion in the room answers the subject's question.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{CallRooms, End, Entrance, Line, Listener, Packet, PersonAction, View};
use crate::backend::Refused;
use crate::backend::room::RoomId;
use crate::domain::id::PersonId;
use crate::domain::samples::person;

/// Calls under test.
pub trait Subject {
    fn call_rooms(&self) -> &dyn CallRooms;

    /// A room with a companion, in whose call nobody is.
    fn room(&self) -> RoomId;

    /// The words to which the companion answers aloud.
    fn question(&self) -> &'static str;

    /// Waits for some seconds.
    fn wait(&self, secs: f64) -> impl Future<Output = ()>;
}

/// Generates one test for each rule, in paused time. The expression creates the subject.
#[macro_export]
macro_rules! call_room_conformance {
    ($subject:expr) => {
        $crate::call_room_conformance!($subject;
            a_room_that_does_not_exist_has_no_call,
            who_enters_is_shown_the_call_first_and_is_described_as_in_it,
            the_others_are_shown_who_enters_and_leaves,
            a_second_microphone_of_a_person_ends_the_first_connection,
            a_second_connection_that_listens_ends_nothing,
            a_lost_connection_is_not_a_farewell,
            what_comes_after_a_farewell_changes_nothing,
            a_reply_is_shown_before_its_packets_and_ends_with_them,
            a_reply_that_is_stopped_is_cut_and_has_no_more_packets,
        );
    };
    ($subject:expr; $($rule:ident),* $(,)?) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $rule() {
                $crate::call_room::conformance::$rule($subject).await;
            }
        )*
    };
}
pub use crate::call_room_conformance as conformance;

pub async fn a_room_that_does_not_exist_has_no_call(subject: impl Subject) {
    let rooms = subject.call_rooms();
    let nowhere = RoomId::parse("nowhere").unwrap();

    let entrance = Entrance { author: person("ana"), has_microphone: true, listener: Arc::<Page>::default() };

    assert!(matches!(rooms.describe(&nowhere).await, Err(Refused::NotFound(_))));
    assert!(matches!(rooms.admits(&nowhere, "ana").await, Err(Refused::NotFound(_))));
    assert!(matches!(rooms.enter(&nowhere, entrance).await, Err(Refused::NotFound(_))));
}

pub async fn who_enters_is_shown_the_call_first_and_is_described_as_in_it(subject: impl Subject) {
    assert_eq!(people(&subject).await, [] as [PersonId; 0]);
    subject.call_rooms().admits(&subject.room(), "ana").await.unwrap();

    let ana = Caller::enter(&subject, "ana", true).await;

    let first = ana.page.seen().remove(0);
    let Seen::View(View::Entered { you, people: here }) = first else { panic!("{first:?}") };
    assert_eq!((you, here.len(), &here[0].user), (PersonId::from("ana"), 1, &PersonId::from("ana")));
    assert!(!here[0].only_listens && !here[0].is_muted && !here[0].talks);
    assert_eq!(people(&subject).await, ["ana".into()]);
}

pub async fn the_others_are_shown_who_enters_and_leaves(subject: impl Subject) {
    let ana = Caller::enter(&subject, "ana", true).await;
    let ben = Caller::enter(&subject, "ben", false).await;

    ben.line.report(PersonAction::Leave);
    subject.wait(1.0).await;

    let shown = ana.page.seen();
    assert!(
        shown
            .iter()
            .any(|seen| matches!(seen, Seen::View(View::Joined(person)) if person.user == "ben".into() && person.only_listens))
    );
    assert!(shown.contains(&Seen::View(View::Left("ben".into()))) && !shown.iter().any(|seen| matches!(seen, Seen::End(_))));
    assert_eq!(ben.page.seen().last(), Some(&Seen::End(End::Left)), "the last thing that it is told");
    assert_eq!(people(&subject).await, ["ana".into()]);
}

pub async fn a_second_microphone_of_a_person_ends_the_first_connection(subject: impl Subject) {
    let before = Caller::enter(&subject, "ana", true).await;
    let after = Caller::enter(&subject, "ana", true).await;

    assert_eq!(before.page.seen().last(), Some(&Seen::End(End::Moved)));
    assert!(matches!(after.page.seen()[0], Seen::View(View::Entered { .. })));
    drop(before);
    subject.wait(20.0).await;
    assert_eq!(people(&subject).await, ["ana".into()]);
}

pub async fn a_second_connection_that_listens_ends_nothing(subject: impl Subject) {
    let first = Caller::enter(&subject, "ana", true).await;
    let second = Caller::enter(&subject, "ana", false).await;

    drop(second);
    subject.wait(20.0).await;

    assert!(!first.page.seen().iter().any(|seen| matches!(seen, Seen::End(_))));
    assert_eq!(people(&subject).await, ["ana".into()]);
}

pub async fn a_lost_connection_is_not_a_farewell(subject: impl Subject) {
    let ana = Caller::enter(&subject, "ana", true).await;
    let ben = Caller::enter(&subject, "ben", true).await;

    drop(ben);
    subject.wait(1.0).await;

    assert_eq!(people(&subject).await, ["ana".into(), "ben".into()]);
    subject.wait(30.0).await;
    assert_eq!(people(&subject).await, ["ana".into()]);
    assert!(ana.page.seen().contains(&Seen::View(View::Left("ben".into()))));
}

pub async fn what_comes_after_a_farewell_changes_nothing(subject: impl Subject) {
    let ana = Caller::enter(&subject, "ana", true).await;
    let ben = Caller::enter(&subject, "ben", true).await;
    ben.line.report(PersonAction::Leave);
    subject.wait(10.0).await;
    let before = ana.page.seen();

    ben.line.push_packet(1, &[0]);
    for told in [
        PersonAction::Muted(true),
        PersonAction::Ignored(true),
        PersonAction::Say("Hello?".into()),
        PersonAction::Stop { reply: 1 },
        PersonAction::Leave,
    ] {
        ben.line.report(told);
    }
    subject.wait(10.0).await;

    assert_eq!(ana.page.seen(), before);
}

pub async fn a_reply_is_shown_before_its_packets_and_ends_with_them(subject: impl Subject) {
    let ana = Caller::enter(&subject, "ana", true).await;

    ana.line.report(PersonAction::Say(subject.question().into()));
    ana.listen(&subject, |seen| matches!(seen, Seen::View(View::Done(_)))).await;
    subject.wait(1.0).await;

    let seen = ana.page.seen();
    let at = |wanted: &dyn Fn(&Seen) -> bool| seen.iter().position(wanted).unwrap_or_else(|| panic!("{seen:?}"));
    let speaking = at(&|seen| matches!(seen, Seen::View(View::Speaking { .. })));
    let Seen::View(View::Speaking { reply, from: Duration::ZERO, .. }) = seen[speaking] else { panic!("{:?}", seen[speaking]) };
    let sentence = at(&|seen| matches!(seen, Seen::View(View::Sentence { reply: of, from: Duration::ZERO, .. }) if *of == reply));
    let first = at(&|seen| matches!(seen, Seen::Packet(_)));
    let done = at(&|seen| *seen == Seen::View(View::Done(reply)));
    assert!(speaking < sentence && sentence < first && first < done, "{seen:?}");
    assert!(!seen[done..].iter().any(|seen| matches!(seen, Seen::Packet(_))), "a packet follows the end");
    for (number, packet) in (0..).zip(ana.page.packets()) {
        assert_eq!((packet.reply, packet.number), (reply, number));
        assert!((1..=1_275).contains(&packet.bytes.len()));
    }
}

pub async fn a_reply_that_is_stopped_is_cut_and_has_no_more_packets(subject: impl Subject) {
    let ana = Caller::enter(&subject, "ana", true).await;
    ana.line.report(PersonAction::Say(subject.question().into()));
    ana.listen(&subject, |seen| matches!(seen, Seen::Packet(packet) if packet.number == 30)).await;
    let reply = ana.page.packets()[0].reply;

    ana.line.report(PersonAction::Stop { reply });
    subject.wait(5.0).await;

    let seen = ana.page.seen();
    let cut = seen.iter().position(|seen| matches!(seen, Seen::View(View::Cut { reply: of, .. }) if *of == reply));
    let after = &seen[cut.unwrap_or_else(|| panic!("{seen:?}"))..];
    assert!(!after.iter().any(|seen| matches!(seen, Seen::Packet(packet) if packet.reply == reply)), "{after:?}");
}

/// An item that a page received.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    View(View),
    Packet(Packet),
    End(End),
}

#[derive(Default)]
struct Page(Mutex<Vec<Seen>>);

impl Listener for Page {
    fn show(&self, view: &View) {
        self.0.lock().push(Seen::View(view.clone()));
    }

    fn play(&self, packet: &Packet) {
        self.0.lock().push(Seen::Packet(packet.clone()));
    }

    fn end(&self, end: End) {
        self.0.lock().push(Seen::End(end));
    }
}

impl Page {
    fn seen(&self) -> Vec<Seen> {
        self.0.lock().clone()
    }

    fn packets(&self) -> Vec<Packet> {
        let packet = |seen| if let Seen::Packet(packet) = seen { Some(packet) } else { None };
        self.seen().into_iter().filter_map(packet).collect()
    }
}

struct Caller {
    line: Arc<dyn Line>,
    page: Arc<Page>,
}

impl Caller {
    async fn enter(subject: &impl Subject, name: &str, has_microphone: bool) -> Self {
        let page = Arc::<Page>::default();
        let entrance = Entrance { author: person(name), has_microphone, listener: page.clone() };
        let line = subject.call_rooms().enter(&subject.room(), entrance).await.unwrap_or_else(|refused| panic!("{refused}"));
        subject.wait(1.0).await;
        Self { line, page }
    }

    /// Reports received packets as played until an awaited item has arrived. Panics after a minute without it.
    async fn listen(&self, subject: &impl Subject, awaited: impl Fn(&Seen) -> bool) {
        for _ in 0..600 {
            if self.page.seen().iter().any(&awaited) {
                return;
            }
            subject.wait(0.1).await;
            if let Some(newest) = self.page.packets().last() {
                let position = Duration::from_millis(20) * (newest.number + 1);
                self.line.report(PersonAction::Played { reply: newest.reply, position });
            }
        }
        panic!("it does not come: {:?}", self.page.seen());
    }
}

async fn people(subject: &impl Subject) -> Vec<PersonId> {
    let description = subject.call_rooms().describe(&subject.room()).await.unwrap();
    description.people.into_iter().map(|person| person.user).collect()
}
