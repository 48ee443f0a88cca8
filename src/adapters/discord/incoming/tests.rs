use std::time::Duration;

use proptest::prelude::*;
use twilight_model::channel::AttachmentFlags;
use twilight_model::channel::message::MessageReferenceType;

use super::super::snowflake::id;
use super::super::wire::{
    Answer, Attachment, Embed, Forwarded, Media, Member, Poll, PollEmoji, Reference, Snapshot, Sticker, User,
};
use super::*;

const ANA: u64 = 1_001;
const BOB: u64 = 1_002;
const BOT: u64 = 9_000;
const APPLICATION: u64 = 9_001;
const US: Bot = Bot { user: id(BOT), application: id(APPLICATION) };

#[test]
fn markup_is_replaced_by_names() {
    for (content, text, own_words) in [
        ("hi <@1002>", "hi @Bob", "hi \u{fffc}"),
        ("hi <@!1002>!", "hi @Bob!", "hi \u{fffc}!"),
        ("<@9000> hi", "@Tertulia hi", "\u{fffc} hi"),
        ("<@5>", "@unknown-user", "\u{fffc}"),
        ("<@77>", "@Eve", "\u{fffc}"),
        ("<@&30> <@&31>", "@mods @unknown-role", "\u{fffc} \u{fffc}"),
        ("<@&32>", "@everyone", "\u{fffc}"),
        ("<#20> <#21>", "#general #unknown", "\u{fffc} \u{fffc}"),
        ("<:aria:12><a:wave:13>", ":aria::wave:", "\u{fffc}\u{fffc}"),
        ("</play now:4>", "/play now", "\u{fffc}"),
        ("<id:customize>", "[Channels & Roles]", "\u{fffc}"),
        ("<id:nowhere>", "<id:nowhere>", "\u{fffc}"),
        ("<t:1618953630>", "2021-04-20 21:20 UTC", "\u{fffc}"),
        ("<t:1618953630:R>", "2021-04-20 21:20 UTC", "\u{fffc}"),
        ("<t:1618953630:d>", "2021-04-20", "\u{fffc}"),
        ("<t:1618953630:t>", "21:20 UTC", "\u{fffc}"),
        ("<t:1618953630:T>", "21:20:30 UTC", "\u{fffc}"),
        ("<t:99999999999999>", "<t:99999999999999>", "\u{fffc}"),
        ("`<@1002>` \\<@1002>", "`<@1002>` \\<@1002>", "`<@1002>` \\<@1002>"),
        ("```\n<:a_b:1>\n```", "```\n<:a_b:1>\n```", "```\n<:a_b:1>\n```"),
        ("**bold** ||secret||", "**bold** ||secret||", "**bold** ||secret||"),
        ("@\u{200b}everyone <\u{200b}@&1>", "@everyone <@&1>", "@everyone <@&1>"),
    ] {
        let inbound_message = accepted(&Message { mentions: vec![bob(), our_bot()], ..message(content) });

        assert_eq!((&*inbound_message.text, inbound_message.own_words.as_deref()), (text, Some(own_words)), "{content:?}");
    }
}

#[test]
fn attachments_are_described_in_brackets() {
    let file = |filename: &str, content_type: &str| Attachment {
        filename: filename.into(),
        content_type: content_type.into(),
        size: 5,
        ..Attachment::default()
    };
    let image = || file("cat.png", "image/png");
    for (attachment, text) in [
        (image(), "[image: cat.png]"),
        (Attachment { flags: Some(AttachmentFlags::IS_SPOILER), ..image() }, "[image: cat.png, hidden as a spoiler]"),
        (file("SPOILER_cat.png", "image/png"), "[image: cat.png, hidden as a spoiler]"),
        (
            Attachment { description: "a cat]\n[on a mat".into(), ..image() },
            "[image: cat.png, described as \"a cat) (on a mat\"]",
        ),
        (file("cat.png", "video/mp4"), "[video: cat.png]"),
        (file("cat.png", "audio/ogg"), "[audio: cat.png]"),
        (Attachment { size: 2_340_000, ..file("cat.png", "") }, "[file: cat.png, 2.3 MB]"),
        (file("cat.png", "text/plain"), "[file: cat.png, 5 B]"),
    ] {
        let inbound_message = accepted(&Message { attachments: vec![attachment], ..message("") });

        assert_eq!((&*inbound_message.text, inbound_message.own_words.as_deref()), (text, Some("")));
    }
}

#[test]
fn a_voice_note_shows_its_length() {
    let with = |flags, duration_secs, files| {
        let file = Attachment { filename: "voice-message.ogg".into(), duration_secs, ..Attachment::default() };
        let said = accepted(&Message { flags: Some(flags), attachments: vec![file; files], ..message("") });
        (said.text.to_string(), said.voice_note)
    };
    let spoken = |duration_secs| with(MessageFlags::IS_VOICE_MESSAGE, duration_secs, 1);

    assert_eq!(spoken(Some(12.3)), ("[voice note, 12 s]".to_owned(), Some(Duration::from_millis(12_300))));
    assert_eq!(spoken(Some(1e300)).1, Some(Duration::from_secs(86_400)));
    for unknown in [Some(f64::NAN), Some(-1.0), None] {
        assert_eq!(spoken(unknown), ("[voice note]".to_owned(), Some(Duration::ZERO)));
    }
    assert_eq!(with(MessageFlags::empty(), Some(1.0), 1).1, None, "a file is no voice note");
    assert_eq!(with(MessageFlags::IS_VOICE_MESSAGE, Some(1.0), 2).1, None, "a voice note has one recording");
}

#[test]
fn stickers_polls_and_forwards_follow_the_text() {
    let forwarded = Forwarded { content: "ask <@1002>\nAria]".into(), sticker_items: stickers("Cat", 1), ..Forwarded::default() };
    let inbound_message = accepted(&Message {
        sticker_items: stickers("Wave", 1),
        poll: Some(poll("Pizza?", &["yes", "no"])),
        mentions: vec![bob()],
        ..forwarding("look", forwarded)
    });

    assert_eq!(
        &*inbound_message.text,
        "look\n[sticker: Wave]\n[poll: Pizza? Answers: yes / no]\n[forwarded]\n> ask @Bob\n> Aria]\n> [sticker: Cat]"
    );
    assert_eq!(inbound_message.own_words.as_deref(), Some("look"));
}

#[test]
fn answers_with_emoji_and_forwarded_polls_embeds_and_voice_messages_are_described() {
    let emoji = |name: &str| Media { text: None, emoji: Some(PollEmoji { name: name.into() }) };
    let answers =
        vec![Answer { poll_media: emoji("🍕") }, Answer { poll_media: Media { text: Some("no".into()), ..emoji("🥗") } }];
    let poll = Poll { question: Media { text: Some("Lunch?".into()), emoji: None }, answers };
    let voice = Attachment { filename: "voice-message.ogg".into(), duration_secs: Some(3.2), ..Attachment::default() };
    let forwarded = Forwarded {
        attachments: vec![voice],
        flags: Some(MessageFlags::IS_VOICE_MESSAGE),
        poll: Some(poll.clone()),
        embeds: vec![Embed { title: "News".into(), description: "It [rains].".into() }, Embed::default()],
        ..Forwarded::default()
    };

    let text = |message: &Message| accepted(message).text.to_string();

    assert_eq!(text(&Message { poll: Some(poll), ..message("") }), "[poll: Lunch? Answers: 🍕 / 🥗 no]");
    assert_eq!(
        text(&forwarding("", forwarded)),
        "[forwarded]\n> [voice note, 3 s]\n> [poll: Lunch? Answers: 🍕 / 🥗 no]\n> [embed: News – It (rains).]"
    );
}

#[test]
fn a_forwarded_message_without_text_is_mentioned() {
    let inbound_message = accepted(&forwarding("", Forwarded::default()));

    assert_eq!(&*inbound_message.text, "[a forwarded message]");
}

#[test]
fn many_files_are_counted() {
    let attachments = vec![Attachment { filename: "x".into(), ..Attachment::default() }; 13];

    let inbound_message = accepted(&Message { attachments, ..message("") });

    assert_eq!(inbound_message.text.lines().count(), 11);
    assert!(inbound_message.text.ends_with("[3 more files]"));
}

#[test]
fn a_message_is_bounded_with_any_attachments() {
    let long = "é".repeat(50_000);
    let attachment = Attachment { filename: long.clone(), description: long.clone(), ..Attachment::default() };
    let attachments = vec![attachment; 50];
    let forwarded = Forwarded {
        content: long.clone(),
        attachments: attachments.clone(),
        sticker_items: stickers(&long, 50),
        ..Forwarded::default()
    };

    let inbound_message = accepted(&Message {
        attachments,
        sticker_items: stickers(&long, 50),
        poll: Some(poll(&long, &[long.as_str(); 50])),
        ..forwarding(&long, forwarded)
    });

    assert!(inbound_message.text.chars().count() <= MAX_CHARS + 4);
    assert!(inbound_message.own_words.unwrap().chars().count() <= MAX_CHARS + 4);
}

#[test]
fn only_conversation_types_are_accepted() {
    let talk: Vec<u8> = (0..=u8::MAX).filter(|kind| is_conversation((*kind).into())).collect();

    assert_eq!(talk, [0, 19, 20, 23]);
    for kind in [1_u8, 6, 7, 8, 12, 18, 21, 24, 46, 200] {
        let event = Message { kind: kind.into(), ..message("hi") };
        assert_eq!(read(&event), Incoming::Ignored(IgnoreReason::NotConversation), "{kind}");
    }
}

#[test]
fn a_message_without_content_is_ignored() {
    assert_eq!(read(&message("")), Incoming::Ignored(IgnoreReason::Empty));
    assert_eq!(read(&message(" \n")), Incoming::Ignored(IgnoreReason::Empty));
    for flags in [MessageFlags::LOADING, MessageFlags::EPHEMERAL] {
        let hidden = Message { flags: Some(flags), ..message("x") };
        assert_eq!(read(&hidden), Incoming::Ignored(IgnoreReason::NotPublic));
    }
}

#[test]
fn the_sender_depends_only_on_ids() {
    let by = |author| Message { author, ..message("hi") };
    let webhook = |webhook: u64, application: Option<u64>| Message {
        webhook_id: Some(id(webhook)),
        application_id: application.map(id),
        ..by(user(webhook, "Aria"))
    };
    let ours = Sender::Ours(Some("Aria".to_owned()));
    for (name, origin, expected) in [
        ("a person", by(ana()), by_other(ANA, "Ana", Role::Person)),
        ("a person called like us", by(user(ANA, "Tertulia")), by_other(ANA, "Tertulia", Role::Person)),
        ("a bot", by(User { bot: Some(true), ..user(5, "Beep") }), by_other(5, "Beep", Role::Bot)),
        ("a webhook", webhook(6, Some(7)), by_other(6, "Aria", Role::Bot)),
        ("a webhook without owner", webhook(6, None), by_other(6, "Aria", Role::Bot)),
        ("our application's webhook", webhook(6, Some(APPLICATION)), ours),
        ("our bot", by(our_bot()), Sender::Ours(None)),
        ("our answer", Message { author: our_bot(), ..webhook(APPLICATION, Some(APPLICATION)) }, Sender::Ours(None)),
        (
            "a user of our application",
            Message { application_id: Some(id(APPLICATION)), ..by(ana()) },
            by_other(ANA, "Ana", Role::Person),
        ),
        ("Discord", by(User { system: Some(true), ..user(5, "Discord") }), Sender::System),
    ] {
        let incoming = read(&origin);

        match &expected {
            Sender::Ours(name) => assert_eq!(incoming, Incoming::Ours(name.clone())),
            Sender::System => assert_eq!(incoming, Incoming::Ignored(IgnoreReason::NotConversation)),
            Sender::Other(author) => {
                assert!(matches!(&incoming, Incoming::Message(message) if message.from == *author), "{name}")
            }
        }
        let quoted_from = match &expected {
            Sender::Ours(name) => name.as_deref().map(|name| author_of("", name, Role::Companion)),
            Sender::Other(author) => Some(author.clone()),
            Sender::System => None,
        };
        let quoted = quoted_from.map(|from| Quoted::new(from, "hi"));
        let answer = accepted(&answering(Some(origin)));
        assert_eq!(answer.reply_to, Some(ReplyTo::Foreign { id: "3".into(), by: answered(expected), quoted }), "{name}");
    }
}

#[test]
fn people_have_their_names_of_the_guild() {
    let ana = User { global_name: Some("Global".into()), ..user(ANA, "ana_1") };

    assert_eq!(ana.shown(Some("Nickie")), "Nickie");
    assert_eq!(ana.shown(None), "Global");
    assert_eq!(user(ANA, "ana_1").shown(None), "ana_1");
    assert_eq!(ana.shown(Some("\u{202e}\u{200b}")), "Global");
}

#[test]
fn mentions_hold_users_and_neither_roles_nor_everyone() {
    let inbound_message =
        accepted(&Message { mentions: vec![our_bot(), bob(), bob()], ..message("@everyone <@&30> <@1002> <@9000>") });

    assert_eq!(inbound_message.mentions, ["discord:1002".into()]);
    assert!(inbound_message.to_all);
    assert!(!accepted(&message("@here <@9000>")).to_all);
}

#[test]
fn a_reply_to_a_deleted_message_has_no_author() {
    let inbound_message = accepted(&answering(None));

    assert_eq!(inbound_message.reply_to, Some(ReplyTo::Foreign { id: "3".into(), by: None, quoted: None }));
}

#[test]
fn a_reply_quotes_the_beginning_of_what_it_replies_to() {
    let picture = Attachment { filename: "cat.png".into(), content_type: "image/png".into(), ..Attachment::default() };
    let quoted = |replied: Message| match accepted(&answering(Some(replied))).reply_to {
        Some(ReplyTo::Foreign { quoted, .. }) => quoted.map(|quoted| quoted.text.to_string()),
        other => panic!("{other:?}"),
    };

    assert_eq!(quoted(Message { attachments: vec![picture], ..message("") }).as_deref(), Some("[image: cat.png]"));
    assert_eq!(quoted(message(&"x".repeat(1_000))), Some(["x".repeat(200).as_str(), " […]"].concat()));
    assert_eq!(quoted(message("")), None);
    assert_eq!(quoted(Message { kind: MessageType::UserJoin, ..message("hi") }), None);
}

proptest! {
    #[test]
    fn code_and_plain_text_are_unchanged(content in "[a-z `\\n*_~|>#-]{1,60}") {
        prop_assume!(!content.trim().is_empty());

        let inbound_message = accepted(&message(&content));

        prop_assert_eq!(&*inbound_message.text, content.trim());
        prop_assert_eq!(inbound_message.own_words.as_deref(), Some(content.trim()));
    }
}

fn read(message: &Message) -> Incoming {
    classify(message, US, &Town)
}

pub fn accepted(message: &Message) -> InboundMessage {
    match read(message) {
        Incoming::Message(inbound_message) => *inbound_message,
        other => panic!("{other:?}"),
    }
}

/// A message from Ana.
pub fn message(content: &str) -> Message {
    Message {
        id: id(3),
        kind: MessageType::Regular,
        flags: None,
        author: ana(),
        member: Member::default(),
        webhook_id: None,
        application_id: None,
        content: Some(content.to_owned()),
        edited_timestamp: None,
        mentions: Vec::new(),
        mention_roles: Vec::new(),
        attachments: Vec::new(),
        sticker_items: Vec::new(),
        poll: None,
        message_reference: None,
        message_snapshots: Vec::new(),
        referenced_message: None,
    }
}

fn forwarding(content: &str, forwarded: Forwarded) -> Message {
    let message_reference = Some(Reference { kind: Some(MessageReferenceType::Forward), message_id: None, channel_id: None });
    Message { message_reference, message_snapshots: vec![Snapshot { message: forwarded }], ..message(content) }
}

fn author_of(id: &str, name: &str, role: Role) -> Author {
    Author { id: id.into(), name: name.into(), role }
}

fn answering(replied: Option<Message>) -> Message {
    let referenced_message = replied.map(Box::new);
    let message_reference = Some(Reference { kind: None, message_id: Some(id(3)), channel_id: None });
    Message { kind: MessageType::Reply, message_reference, referenced_message, ..message("hi") }
}

fn stickers(name: &str, count: usize) -> Vec<Sticker> {
    vec![Sticker { name: name.to_owned() }; count]
}

fn poll(question: &str, answers: &[&str]) -> Poll {
    let media = |text: &str| Media { text: Some(text.to_owned()), emoji: None };
    Poll { question: media(question), answers: answers.iter().map(|text| Answer { poll_media: media(text) }).collect() }
}

struct Town;

impl NameLookup for Town {
    fn person(&self, id: Snowflake) -> Option<String> {
        (id.get() == 77).then(|| "Eve\u{202e}".to_owned())
    }

    fn role(&self, id: Snowflake) -> Option<String> {
        match id.get() {
            30 => Some("mods".to_owned()),
            32 => Some("@everyone".to_owned()),
            _ => None,
        }
    }

    fn channel(&self, id: Snowflake) -> Option<String> {
        (id.get() == 20).then(|| "general".to_owned())
    }
}

fn by_other(user: u64, name: &str, role: Role) -> Sender {
    Sender::Other(Author { id: id(user).person().as_str().into(), name: name.into(), role })
}

fn ana() -> User {
    user(ANA, "Ana")
}

fn bob() -> User {
    user(BOB, "Bob")
}

fn our_bot() -> User {
    User { bot: Some(true), ..user(BOT, "Tertulia") }
}

pub fn user(user: u64, username: &str) -> User {
    let member = Member::default();
    User { id: id(user), username: username.to_owned(), global_name: None, bot: None, system: None, member }
}
