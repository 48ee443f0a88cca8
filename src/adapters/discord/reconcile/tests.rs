use proptest::prelude::*;

use super::super::snowflake::id;
use super::*;

const HOOK: u64 = 900;
const OTHER_HOOK: u64 = 901;
const KNOWN: u64 = 1_000;

#[test]
fn parts_that_appear_in_order_were_posted() {
    let messages = [ours(1_001, "one"), by_ana(1_002, "two"), ours(1_003, "two")];

    assert_eq!(
        found(&["one", "two", "three"], &messages),
        [Verdict::Posted(id(1_001)), Verdict::Posted(id(1_003)), Verdict::Missing]
    );
}

#[test]
fn an_empty_history_means_that_all_parts_are_missing() {
    assert_eq!(found(&["one", "two"], &[]), [Verdict::Missing, Verdict::Missing]);
    assert_eq!(found(&["one"], &[by_ana(1_001, "one")]), [Verdict::Missing]);
}

#[test]
fn messages_known_before_sending_match_no_part() {
    assert_eq!(found(&["one"], &[ours(KNOWN, "one"), ours(999, "one")]), [Verdict::Missing]);
}

#[test]
fn the_same_content_twice_needs_two_messages() {
    let once = [ours(1_001, "ha")];
    let twice = [ours(1_001, "ha"), ours(1_005, "ha")];
    let thrice = [ours(1_001, "ha"), ours(1_005, "ha"), ours(1_009, "ha")];

    assert_eq!(found(&["ha", "ha"], &once), [Verdict::Posted(id(1_001)), Verdict::Missing]);
    assert_eq!(found(&["ha", "ha"], &twice), [Verdict::Posted(id(1_001)), Verdict::Posted(id(1_005))]);
    assert_eq!(found(&["ha", "ha"], &thrice), [Verdict::Posted(id(1_001)), Verdict::Posted(id(1_005))]);
}

#[test]
fn the_same_text_of_another_companion_matches_no_part() {
    let messages = [
        ReadMessage { username: "Mira", ..ours(1_001, "one") },
        ReadMessage { webhook: Some(id(OTHER_HOOK)), ..ours(1_002, "one") },
    ];

    assert_eq!(found(&["one"], &messages), [Verdict::Missing]);
}

#[test]
fn a_message_on_record_matches_no_other_part() {
    let parts = sending(&["one"]);

    let verdict = reconcile(&parts, &speaker(), None, &all(&[ours(1_001, "one")]), &BTreeSet::from([id(1_001)]));

    assert_eq!(verdict, [Verdict::Missing]);
}

#[test]
fn a_part_before_a_posted_one_was_posted_and_deleted() {
    assert_eq!(found(&["one", "two"], &[ours(1_002, "two")]), [Verdict::Gone, Verdict::Posted(id(1_002))]);
}

#[test]
fn an_incomplete_history_leaves_parts_unconfirmed() {
    let parts = sending(&["one", "two"]);
    let read = History { messages: vec![ours(1_001, "one")], is_complete: false };

    let verdict = reconcile(&parts, &speaker(), Some(id(KNOWN)), &read, &BTreeSet::new());

    assert_eq!(verdict, [Verdict::Posted(id(1_001)), Verdict::Unconfirmed]);
}

#[test]
fn an_edited_or_hidden_message_may_be_the_part() {
    let edited = ReadMessage { is_edited: true, ..ours(1_001, "changed") };
    let unseen = ours(1_001, "");
    let of_ana = ReadMessage { is_edited: true, ..by_ana(1_001, "x") };

    assert_eq!(found(&["one"], &[edited]), [Verdict::Unconfirmed]);
    assert_eq!(found(&["one"], &[unseen]), [Verdict::Unconfirmed]);
    assert_eq!(found(&["one"], &[of_ana]), [Verdict::Missing]);
    assert_eq!(found(&["one"], &[ReadMessage { id: id(1_000), ..edited }]), [Verdict::Missing]);
}

#[test]
fn withheld_messages_match_by_speaker_and_order() {
    let withheld = |message| ReadMessage { is_withheld: true, ..ours(message, "") };
    let of_mira = ReadMessage { username: "Mira", ..withheld(1_001) };
    let edited = ReadMessage { is_edited: true, ..withheld(1_001) };

    assert_eq!(found(&["one"], &[of_mira, withheld(1_002)]), [Verdict::Posted(id(1_002))]);
    assert_eq!(
        found(&["one", "two"], &[withheld(1_002), withheld(1_001)]),
        [Verdict::Posted(id(1_001)), Verdict::Posted(id(1_002))]
    );
    assert_eq!(found(&["one", "two"], &[withheld(1_001)]), [Verdict::Posted(id(1_001)), Verdict::Missing]);
    assert_eq!(found(&["one"], &[of_mira]), [Verdict::Missing]);
    assert_eq!(found(&["one"], &[withheld(KNOWN)]), [Verdict::Missing]);
    assert_eq!(found(&["one"], &[edited]), [Verdict::Unconfirmed]);
    assert_eq!(found(&["one"], &[withheld(1_001), ours(1_002, "one")]), [Verdict::Posted(id(1_002))]);
    // A message on record belongs to another part, so the next one is considered.
    let taken = BTreeSet::from([id(1_001)]);
    let verdict = reconcile(&sending(&["one"]), &speaker(), Some(id(KNOWN)), &all(&[withheld(1_001), withheld(1_002)]), &taken);
    assert_eq!(verdict, [Verdict::Posted(id(1_002))]);
}

#[test]
fn parts_known_to_be_sent_need_no_search() {
    let mut parts = sending(&["ha", "ha", "ha", "ha"]);
    parts[0].state = State::Sent(id(1_005));
    parts[3].state = State::Owed;

    // A message older than a sent part cannot be a later part.
    let read = all(&[ours(1_001, "ha"), ours(1_005, "ha"), ours(1_006, "ha")]);
    let verdict = reconcile(&parts, &speaker(), Some(id(KNOWN)), &read, &BTreeSet::new());

    assert_eq!(verdict, [Verdict::Posted(id(1_005)), Verdict::Posted(id(1_006)), Verdict::Missing, Verdict::Missing]);
}

#[test]
fn parts_that_were_never_sent_are_missing_without_any_history() {
    let mut parts = sending(&["one", "two"]);
    parts[1].state = State::Owed;

    let verdict = reconcile(&parts, &speaker(), None, &History { messages: vec![], is_complete: false }, &BTreeSet::new());

    assert_eq!(verdict, [Verdict::Unconfirmed, Verdict::Missing]);
}

#[test]
fn names_and_contents_are_compared_as_discord_leaves_them() {
    let messages = [ReadMessage { username: " Mira  Vale", ..ours(1_001, "a b\r\nc") }];
    let speaker = Speaker::Webhook(id(HOOK), "Mira Vale");

    let verdict = reconcile(&sending(&["a  b\nc "]), &speaker, None, &all(&messages), &BTreeSet::new());

    assert_eq!(verdict, [Verdict::Posted(id(1_001))]);
}

#[test]
fn in_a_direct_message_the_bot_is_the_speaker() {
    let by_bot = ReadMessage { webhook: None, author: id(7), ..ours(1_001, "one") };
    let parts = sending(&["one"]);
    let read =
        |messages: &[ReadMessage<'static>]| reconcile(&parts, &Speaker::Bot(id(7)), None, &all(messages), &BTreeSet::new());

    assert_eq!(read(&[by_bot]), [Verdict::Posted(id(1_001))]);
    assert_eq!(read(&[by_ana(1_001, "one")]), [Verdict::Missing]);
    assert_eq!(read(&[ours(1_001, "one")]), [Verdict::Missing]);
}

/// The history of a channel while a reply of several parts was sent.
#[derive(Clone, Debug)]
struct World {
    parts: Vec<String>,
    /// The number of parts that were posted before the crash.
    posted: usize,
    /// Whether one more request was sent and did not arrive.
    lost: bool,
    /// For each posted part, the messages of others before it: kind and content.
    between: Vec<Vec<(u8, String)>>,
}

fn world() -> impl Strategy<Value = World> {
    let word = "[ab]{1,2}";
    (prop::collection::vec(word, 1..6), 0..6_usize, any::<bool>()).prop_flat_map(move |(parts, posted, lost)| {
        let posted = posted.min(parts.len());
        let between = prop::collection::vec(prop::collection::vec((0..4_u8, word), 0..4), posted + 1);
        between.prop_map(move |between| World { parts: parts.clone(), posted, lost, between })
    })
}

impl World {
    /// The messages after the known one, and the ids of the posted parts.
    fn channel(&self) -> (Vec<ReadMessage<'_>>, Vec<Snowflake>) {
        let mut next = KNOWN;
        let mut messages = Vec::new();
        let mut ids = Vec::new();
        for (index, others) in self.between.iter().enumerate() {
            for (sort, content) in others {
                next += 1;
                messages.push(match sort {
                    0 => by_ana(next, content),
                    1 => ReadMessage { username: "Mira", ..ours(next, content) },
                    2 => ReadMessage { webhook: Some(id(OTHER_HOOK)), ..ours(next, content) },
                    _ => ReadMessage { webhook: None, ..ours(next, content) },
                });
            }
            if index < self.posted {
                next += 1;
                messages.push(ours(next, &self.parts[index]));
                ids.push(id(next));
            }
        }
        (messages, ids)
    }

    /// The outbox: posted parts may not be recorded as sent, and one more part may have been in flight.
    fn outbox(&self, noted: usize, ids: &[Snowflake]) -> Vec<OutboxPart> {
        let started = self.posted + usize::from(self.lost);
        let state = |index: usize| match index {
            index if index < noted.min(self.posted) => State::Sent(ids[index]),
            index if index < started => State::Sending,
            _ => State::Owed,
        };
        self.parts
            .iter()
            .enumerate()
            .map(|(index, content)| OutboxPart { content: content.clone(), state: state(index) })
            .collect()
    }
}

proptest! {
    #[test]
    fn posted_parts_are_found_and_others_are_sent(world in world(), noted in 0..6_usize, seed in any::<u64>()) {
        let (mut messages, ids) = world.channel();
        let outbox = world.outbox(noted, &ids);
        // The order of the read messages does not matter.
        let length = messages.len().max(1);
        messages.rotate_left(seed as usize % length);

        let verdict = reconcile(&outbox, &speaker(), Some(id(KNOWN)), &all(&messages), &BTreeSet::new());

        let expected: Vec<_> = (0..world.parts.len())
            .map(|index| ids.get(index).map_or(Verdict::Missing, |id| Verdict::Posted(*id)))
            .collect();
        prop_assert_eq!(verdict, expected);
    }

    #[test]
    fn an_incomplete_history_causes_no_duplicate(world in world(), kept in any::<u64>()) {
        let (messages, ids) = world.channel();
        let outbox = world.outbox(0, &ids);
        let messages: Vec<_> = messages.into_iter().enumerate().filter(|(at, _)| kept >> at & 1 == 1).map(|(_, read)| read).collect();
        let read = History { messages, is_complete: false };

        let verdict = reconcile(&outbox, &speaker(), Some(id(KNOWN)), &read, &BTreeSet::new());

        for (index, found) in verdict.into_iter().enumerate() {
            prop_assert!(index >= world.posted || found != Verdict::Missing, "part {}", index);
        }
    }

    #[test]
    fn deletions_and_edits_cause_no_duplicate_except_at_the_end(world in world(), gone in any::<u64>(), edited in any::<u64>()) {
        let (messages, ids) = world.channel();
        let outbox = world.outbox(0, &ids);
        let left: Vec<_> = messages
            .into_iter()
            .enumerate()
            .filter(|(at, _)| gone >> at & 1 == 0)
            .map(|(at, read)| ReadMessage { is_edited: edited >> at & 1 == 1, ..read })
            .collect();

        let verdict = reconcile(&outbox, &speaker(), Some(id(KNOWN)), &all(&left), &BTreeSet::new());

        // No message matches two parts, and matches keep the order.
        let matched: Vec<_> = verdict.iter().filter_map(|found| match found { Verdict::Posted(id) => Some(*id), _ => None }).collect();
        prop_assert!(matched.is_sorted_by(|one, next| one < next));
        // Either every remaining message of ours is matched, or nothing more is sent.
        let ours_left = left.iter().filter(|read| speaker().is_author_of(read)).count();
        let is_sent = verdict.iter().take(world.posted + usize::from(world.lost)).any(|found| *found == Verdict::Missing);
        prop_assert!(!is_sent || matched.len() == ours_left);
    }
}

fn found(contents: &[&str], messages: &[ReadMessage<'_>]) -> Vec<Verdict> {
    reconcile(&sending(contents), &speaker(), Some(id(KNOWN)), &all(messages), &BTreeSet::new())
}

fn sending(contents: &[&str]) -> Vec<OutboxPart> {
    contents.iter().map(|content| OutboxPart { content: (*content).to_owned(), state: State::Sending }).collect()
}

fn all<'a>(messages: &[ReadMessage<'a>]) -> History<'a> {
    History { messages: messages.to_vec(), is_complete: true }
}

fn speaker() -> Speaker<'static> {
    Speaker::Webhook(id(HOOK), "Aria")
}

fn ours(message: u64, content: &str) -> ReadMessage<'_> {
    ReadMessage {
        id: id(message),
        webhook: Some(id(HOOK)),
        author: id(HOOK),
        username: "Aria",
        content,
        is_withheld: false,
        is_edited: false,
    }
}

fn by_ana(message: u64, content: &str) -> ReadMessage<'_> {
    ReadMessage { webhook: None, author: id(5), username: "Ana", ..ours(message, content) }
}
