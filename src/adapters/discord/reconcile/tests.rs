use super::super::snowflake::id;
use super::*;

const HOOK: u64 = 900;
const OTHER_HOOK: u64 = 901;
const KNOWN: u64 = 1_000;

#[test]
fn the_oldest_message_with_the_content_is_the_part() {
    let messages = [ours(1_009, "ha"), ours(1_001, "one"), by_ana(1_002, "ha"), ours(1_005, "ha")];

    assert_eq!(found("ha", &messages), Verdict::Posted(id(1_005)));
    assert_eq!(found("two", &messages), Verdict::Missing);
    assert_eq!(found("one", &[]), Verdict::Missing);
}

#[test]
fn messages_known_before_sending_do_not_match() {
    assert_eq!(found("one", &[ours(KNOWN, "one"), ours(999, "one")]), Verdict::Missing);
}

#[test]
fn the_same_text_of_another_companion_does_not_match() {
    let messages = [
        ReadMessage { username: "Mira", ..ours(1_001, "one") },
        ReadMessage { webhook: Some(id(OTHER_HOOK)), ..ours(1_002, "one") },
        ReadMessage { webhook: None, ..ours(1_003, "one") },
    ];

    assert_eq!(found("one", &messages), Verdict::Missing);
}

#[test]
fn a_message_on_record_does_not_match() {
    let read =
        |messages: &[ReadMessage<'static>]| reconcile("one", &speaker(), id(KNOWN), &all(messages), &BTreeSet::from([id(1_001)]));

    assert_eq!(read(&[ours(1_001, "one")]), Verdict::Missing);
    assert_eq!(read(&[withheld(1_001), withheld(1_002)]), Verdict::Posted(id(1_002)));
}

#[test]
fn an_incomplete_history_leaves_a_part_unconfirmed() {
    let read = |content| {
        let read = History { messages: vec![ours(1_001, "one")], is_complete: false };
        reconcile(content, &speaker(), id(KNOWN), &read, &BTreeSet::new())
    };

    assert_eq!(read("one"), Verdict::Posted(id(1_001)));
    assert_eq!(read("two"), Verdict::Unconfirmed);
}

#[test]
fn an_edited_or_hidden_message_may_be_the_part() {
    let edited = ReadMessage { is_edited: true, ..ours(1_001, "changed") };
    let unseen = ours(1_001, "");
    let of_ana = ReadMessage { is_edited: true, ..by_ana(1_001, "x") };

    assert_eq!(found("one", &[edited]), Verdict::Unconfirmed);
    assert_eq!(found("one", &[ReadMessage { content: "one", ..edited }]), Verdict::Unconfirmed);
    assert_eq!(found("one", &[unseen]), Verdict::Unconfirmed);
    assert_eq!(found("one", &[of_ana]), Verdict::Missing);
    assert_eq!(found("one", &[ReadMessage { id: id(1_000), ..edited }]), Verdict::Missing);
    assert_eq!(found("one", &[edited, ours(1_002, "one")]), Verdict::Posted(id(1_002)));
}

#[test]
fn a_withheld_message_matches_by_its_speaker() {
    let of_mira = ReadMessage { username: "Mira", ..withheld(1_001) };
    let edited = ReadMessage { is_edited: true, ..withheld(1_001) };

    assert_eq!(found("one", &[of_mira, withheld(1_003), withheld(1_002)]), Verdict::Posted(id(1_002)));
    assert_eq!(found("one", &[of_mira]), Verdict::Missing);
    assert_eq!(found("one", &[withheld(KNOWN)]), Verdict::Missing);
    assert_eq!(found("one", &[edited]), Verdict::Unconfirmed);
    assert_eq!(found("one", &[withheld(1_001), ours(1_002, "one")]), Verdict::Posted(id(1_002)));
}

#[test]
fn names_and_contents_are_compared_as_discord_leaves_them() {
    let messages = [ReadMessage { username: " Mira  Vale", ..ours(1_001, "a b\r\nc") }];
    let speaker = Speaker::Webhook(id(HOOK), "Mira Vale");

    let verdict = reconcile("a  b\nc ", &speaker, id(KNOWN), &all(&messages), &BTreeSet::new());

    assert_eq!(verdict, Verdict::Posted(id(1_001)));
}

#[test]
fn in_a_direct_message_the_bot_is_the_speaker() {
    let by_bot = ReadMessage { webhook: None, author: id(7), ..ours(1_001, "one") };
    let read =
        |messages: &[ReadMessage<'static>]| reconcile("one", &Speaker::Bot(id(7)), id(KNOWN), &all(messages), &BTreeSet::new());

    assert_eq!(read(&[by_bot]), Verdict::Posted(id(1_001)));
    assert_eq!(read(&[by_ana(1_001, "one")]), Verdict::Missing);
    assert_eq!(read(&[ours(1_001, "one")]), Verdict::Missing);
}

fn found(content: &str, messages: &[ReadMessage<'_>]) -> Verdict {
    reconcile(content, &speaker(), id(KNOWN), &all(messages), &BTreeSet::new())
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

fn withheld(message: u64) -> ReadMessage<'static> {
    ReadMessage { is_withheld: true, ..ours(message, "") }
}
