use proptest::prelude::*;

use super::*;

const ANA: u64 = 1_001;
const BOB: u64 = 1_002;
const BOT: u64 = 9_000;
const APPLICATION: u64 = 9_001;
const OUR_WEBHOOK: u64 = 9_002;

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
        let inbound_message = accepted(&RawMessage { mentions: vec![bob(), our_bot()], ..message(content) });

        assert_eq!((&*inbound_message.text, &*inbound_message.own_words), (text, own_words), "{content:?}");
    }
}

#[test]
fn attachments_are_described_in_brackets() {
    let image = Attachment { filename: "cat.png", content_type: Some("image/png"), size: 5, ..Attachment::default() };
    let cases = [
        (vec![image], "[image: cat.png]"),
        (vec![Attachment { is_spoiler: true, ..image }], "[image: cat.png, hidden as a spoiler]"),
        (vec![Attachment { filename: "SPOILER_cat.png", ..image }], "[image: cat.png, hidden as a spoiler]"),
        (
            vec![Attachment { description: Some("a cat]\n[on a mat"), ..image }],
            "[image: cat.png, described as \"a cat) (on a mat\"]",
        ),
        (vec![Attachment { content_type: Some("video/mp4"), ..image }], "[video: cat.png]"),
        (vec![Attachment { content_type: Some("audio/ogg"), ..image }], "[audio: cat.png]"),
        (vec![Attachment { content_type: None, size: 2_340_000, ..image }], "[file: cat.png, 2.3 MB]"),
        (vec![Attachment { content_type: Some("text/plain"), ..image }], "[file: cat.png, 5 B]"),
    ];

    for (attachments, text) in cases {
        let inbound_message = accepted(&RawMessage { attachments, ..message("") });

        assert_eq!((&*inbound_message.text, &*inbound_message.own_words), (text, ""));
    }
}

#[test]
fn a_voice_message_shows_its_length() {
    let spoken = |duration_secs| {
        let attachments = vec![Attachment { filename: "voice-message.ogg", duration_secs, ..Attachment::default() }];
        accepted(&RawMessage { flags: IS_VOICE_MESSAGE, attachments, ..message("") }).text
    };

    assert_eq!(spoken(Some(12.3)), "[voice message, 12 s]");
    assert_eq!(spoken(Some(f64::NAN)), "[voice message]");
    assert_eq!(spoken(None), "[voice message]");
}

#[test]
fn stickers_polls_and_forwards_follow_the_text() {
    let inbound_message = accepted(&RawMessage {
        stickers: vec!["Wave"],
        poll: Some(Poll { question: "Pizza?", answers: vec!["yes", "no"] }),
        forward: Some(Forward { content: "ask <@1002>\nAria]", stickers: vec!["Cat"], ..Forward::default() }),
        mentions: vec![bob()],
        ..message("look")
    });

    assert_eq!(
        inbound_message.text,
        "look\n[sticker: Wave]\n[poll: Pizza? Answers: yes / no]\n[forwarded]\n> ask @Bob\n> Aria]\n> [sticker: Cat]"
    );
    assert_eq!(inbound_message.own_words, "look");
}

#[test]
fn a_forwarded_message_without_text_is_mentioned() {
    let inbound_message = accepted(&RawMessage { forward: Some(Forward::default()), ..message("") });

    assert_eq!(inbound_message.text, "[a forwarded message]");
}

#[test]
fn many_files_are_counted() {
    let attachments = vec![Attachment { filename: "x", ..Attachment::default() }; 13];

    let inbound_message = accepted(&RawMessage { attachments, ..message("") });

    assert_eq!(inbound_message.text.lines().count(), 11);
    assert!(inbound_message.text.ends_with("[3 more files]"));
}

#[test]
fn a_message_is_bounded_with_any_attachments() {
    let long = "é".repeat(50_000);
    let attachment = Attachment { filename: &long, description: Some(&long), ..Attachment::default() };
    let forward = Forward { content: &long, attachments: vec![attachment; 50], stickers: vec![&long; 50] };
    let raw = RawMessage {
        attachments: vec![attachment; 50],
        stickers: vec![&long; 50],
        poll: Some(Poll { question: &long, answers: vec![&long; 50] }),
        forward: Some(forward),
        ..message(&long)
    };

    let inbound_message = accepted(&raw);

    assert!(inbound_message.text.chars().count() <= MAX_CHARS + 4);
    assert!(inbound_message.own_words.chars().count() <= MAX_CHARS + 4);
}

#[test]
fn only_conversation_types_are_accepted() {
    let talk: Vec<u8> = (0..=u8::MAX).filter(|kind| is_conversation(*kind)).collect();

    assert_eq!(talk, [0, 19, 20, 23]);
    for kind in [1, 6, 7, 8, 12, 18, 21, 24, 46, 200] {
        assert_eq!(read(&RawMessage { kind, ..message("hi") }), Incoming::Ignored(IgnoreReason::NotConversation), "{kind}");
    }
}

#[test]
fn a_message_without_content_is_ignored() {
    assert_eq!(read(&message("")), Incoming::Ignored(IgnoreReason::Empty));
    assert_eq!(read(&message(" \n")), Incoming::Ignored(IgnoreReason::Empty));
    assert_eq!(read(&RawMessage { flags: LOADING, ..message("x") }), Incoming::Ignored(IgnoreReason::NotPublic));
    assert_eq!(read(&RawMessage { flags: EPHEMERAL, ..message("x") }), Incoming::Ignored(IgnoreReason::NotPublic));
}

#[test]
fn the_sender_depends_only_on_ids() {
    let webhook = |webhook: u64, application: Option<u64>| Origin {
        author: user(webhook, "Aria"),
        webhook: Some(id(webhook)),
        application: application.map(id),
    };
    let person = Origin { author: ana(), webhook: None, application: None };
    let ours = Sender::Ours(Some("Aria".to_owned()));
    for (name, origin, expected) in [
        ("a person", person, by_other(ANA, "Ana", Role::Person)),
        ("a person called like us", Origin { author: user(ANA, "Tertulia"), ..person }, by_other(ANA, "Tertulia", Role::Person)),
        ("a bot", Origin { author: User { bot: true, ..user(5, "Beep") }, ..person }, by_other(5, "Beep", Role::Bot)),
        ("a webhook", webhook(6, Some(7)), by_other(6, "Aria", Role::Bot)),
        ("a webhook without owner", webhook(6, None), by_other(6, "Aria", Role::Bot)),
        ("our webhook", webhook(OUR_WEBHOOK, None), ours.clone()),
        ("our application's webhook", webhook(6, Some(APPLICATION)), ours),
        ("our bot", Origin { author: our_bot(), ..person }, Sender::Ours(None)),
        ("our answer", Origin { author: our_bot(), ..webhook(APPLICATION, Some(APPLICATION)) }, Sender::Ours(None)),
        (
            "a user of our application",
            Origin { application: Some(id(APPLICATION)), ..person },
            by_other(ANA, "Ana", Role::Person),
        ),
        ("Discord", Origin { author: User { system: true, ..user(5, "Discord") }, ..person }, Sender::System),
    ] {
        let raw = RawMessage { origin, ..message("hi") };

        let incoming = read(&raw);

        match &expected {
            Sender::Ours(name) => assert_eq!(incoming, Incoming::Ours(name.clone())),
            Sender::System => assert_eq!(incoming, Incoming::Ignored(IgnoreReason::NotConversation)),
            Sender::Other(author) => {
                assert!(matches!(&incoming, Incoming::Message(message) if message.from == *author), "{name}")
            }
        }
        let answer = accepted(&RawMessage { answers: Some(Answers { message: id(3), origin: Some(origin) }), ..message("hi") });
        assert_eq!(answer.answers, Some(Answered { message: id(3), sender: Some(expected) }), "{name}");
    }
}

#[test]
fn people_have_their_names_of_the_guild() {
    let ana = User { nick: Some("Nickie"), global_name: Some("Global"), ..user(ANA, "ana_1") };

    assert_eq!(ana.shown(), "Nickie");
    assert_eq!(User { nick: None, ..ana }.shown(), "Global");
    assert_eq!(User { nick: None, global_name: None, ..ana }.shown(), "ana_1");
    assert_eq!(User { nick: Some("\u{202e}\u{200b}"), ..ana }.shown(), "Global");
}

#[test]
fn mentions_hold_users_and_neither_roles_nor_everyone() {
    let inbound_message =
        accepted(&RawMessage { mentions: vec![our_bot(), bob(), bob()], ..message("@everyone <@&30> <@1002> <@9000>") });

    assert_eq!(inbound_message.mentions, ["discord:1002".into()]);
    assert!(inbound_message.mentions_bot);
    assert!(!accepted(&message("@here <@9000>")).mentions_bot);
}

#[test]
fn a_reply_to_a_deleted_message_has_no_author() {
    let inbound_message =
        accepted(&RawMessage { kind: 19, answers: Some(Answers { message: id(3), origin: None }), ..message("hi") });

    assert_eq!(inbound_message.answers, Some(Answered { message: id(3), sender: None }));
}

proptest! {
    #[test]
    fn code_and_plain_text_are_unchanged(content in "[a-z `\\n*_~|>#-]{1,60}") {
        prop_assume!(!content.trim().is_empty());

        let inbound_message = accepted(&message(&content));

        prop_assert_eq!(&*inbound_message.text, content.trim());
        prop_assert_eq!(&*inbound_message.own_words, content.trim());
    }

    #[test]
    fn no_content_panics(content in "\\PC{0,60}|[<@#:!&1t>/id`\\\\ \u{200b}]{0,60}") {
        read(&RawMessage { forward: Some(Forward { content: &content, ..Forward::default() }), ..message(&content) });
    }
}

fn read(raw: &RawMessage<'_>) -> Incoming {
    let webhooks = BTreeSet::from([id(OUR_WEBHOOK)]);
    classify(raw, &OwnIds { bot: id(BOT), application: id(APPLICATION), webhooks: &webhooks }, &Town)
}

fn accepted(raw: &RawMessage<'_>) -> IncomingMessage {
    match read(raw) {
        Incoming::Message(inbound_message) => inbound_message,
        other => panic!("{other:?}"),
    }
}

fn message(content: &str) -> RawMessage<'_> {
    RawMessage {
        id: id(3),
        kind: 0,
        flags: 0,
        origin: Origin { author: ana(), webhook: None, application: None },
        content,
        mentions: Vec::new(),
        attachments: Vec::new(),
        stickers: Vec::new(),
        poll: None,
        forward: None,
        answers: None,
    }
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

fn ana() -> User<'static> {
    user(ANA, "Ana")
}

fn bob() -> User<'static> {
    user(BOB, "Bob")
}

fn our_bot() -> User<'static> {
    User { bot: true, ..user(BOT, "Tertulia") }
}

fn user(user: u64, username: &str) -> User<'_> {
    User { id: id(user), username, global_name: None, nick: None, bot: false, system: false }
}

fn id(id: u64) -> Snowflake {
    Snowflake::new(id).unwrap()
}
