use super::*;
use crate::domain::attachment::{Attachment, with_lines};
use crate::domain::message::Author;
use crate::samples::NOON;

fn said(name: &str, text: &str) -> Message {
    Message::new(Author::of_name(name.into()), text.into())
}

fn entry<'a>(seq: u64, message: &'a Message) -> Entry<'a> {
    Entry { seq: Seq(seq), at: NOON, message, is_edited: false, answers: None }
}

fn markdown(text: &str) -> String {
    let message = said("Ana", text);
    Transcript::new(Markup::Markdown, TimeZone::UTC, Language::English)
        .entry(&entry(1, &message))
        .split_once('\n')
        .unwrap()
        .1
        .replace("\n**Ana** · 12:00\n", "")
}

#[test]
fn a_document_has_days_times_names_marks_and_answers() {
    let mut transcript = Transcript::new(Markup::Markdown, TimeZone::fixed(jiff::tz::offset(2)), Language::English);
    let (question, answer, gone) = (said("Ana", "How are you,\nAria?"), said("Aria", "Well."), said("", ""));
    let answer = Message { from: Author { role: Role::Companion, ..answer.from.clone() }, ..answer };
    let spoken = Message { modality: Modality::Voice, ..answer.clone() };

    let written = [
        transcript.head("Großmutters *Küche*", NOON),
        transcript.entry(&entry(4, &question)),
        transcript.entry(&Entry { answers: Some((Seq(4), Some(&question))), ..entry(5, &answer) }),
        transcript.entry(&entry(6, &gone)),
        transcript.entry(&Entry { is_edited: true, answers: Some((Seq(4), Some(&question))), ..entry(7, &spoken) }),
        transcript.entry(&Entry {
            at: NOON + std::time::Duration::from_secs(11 * 3600),
            answers: Some((Seq(6), None)),
            ..entry(8, &answer)
        }),
        transcript.foot(5, 0),
    ];

    assert_eq!(
        written.join("\n"),
        "# Großmutters \\*Küche\\*\n\nExported on 1 May 2026 at 14:00. Times: +02:00.\n\n\
         ## Friday, 1 May 2026\n\n**Ana** · 14:00\n> How are you,  \n> Aria?  \n\n\
         **Aria** · 14:00 · AI\n> Well.  \n\n**A deleted message** · 14:00\n\n\
         **Aria** · 14:00 · AI · spoken · edited\n> *answers Ana: How are you, Aria?*\n>\n> Well.  \n\n\
         ## Saturday, 2 May 2026\n\n**Aria** · 01:00 · AI\n> *answers a deleted message*\n>\n> Well.  \n\n---\n\n5 messages."
    );
}

#[test]
fn what_a_document_leaves_out_is_named() {
    let attachments = ["cat.png", "dog.png"].map(|name| Attachment::new("0".into(), "image/png".into(), name.into(), 9)).to_vec();
    let message = Message { text: with_lines("Look!", &attachments), attachments, ..said("Ana", "") };

    let written = Transcript::new(Markup::Html, TimeZone::UTC, Language::English).entry(&entry(1, &message));

    assert!(written.contains(" · 2 files, which are not in this document</span>"), "{written}");
    assert!(written.contains("[image: cat.png]\n[image: dog.png]"), "{written}");
}

#[test]
fn a_time_that_the_clock_shows_twice_has_its_distance_from_utc() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let message = said("Ana", "Still awake.");
    let mut times = ["00:59", "00:30", "01:30", "02:30"].map(|time| {
        let at: jiff::Timestamp = format!("2026-10-25T{time}:00Z").parse().unwrap();
        let at = Moment::from_micros(at.as_microsecond().try_into().unwrap());
        let written =
            Transcript::new(Markup::Markdown, berlin.clone(), Language::English).entry(&Entry { at, ..entry(1, &message) });
        written.lines().find_map(|line| line.strip_prefix("**Ana** · ").map(str::to_owned)).unwrap()
    });
    times.sort();

    assert_eq!(times, ["02:30 +01:00", "02:30 +02:00", "02:59 +02:00", "03:30"]);
}

#[test]
fn nothing_that_a_message_opens_in_markdown_reaches_beyond_it() {
    for (text, written) in [
        ("```rust\nlet a: Vec<u8>;", "> ```rust\n> let a: Vec<u8>;\n"),
        ("```\n<b>\n~~~\n``` x\n```\n<b>", "> ```\n> <b>\n> ~~~\n> ``` x\n> ```\n> &lt;b>  \n"),
        ("```\n  ```\n<b>", "> ```\n>   ```\n> &lt;b>  \n"),
        ("- a\n  ```\n<b>\n```\n<i>", "> - a  \n>   \\```  \n> &lt;b>  \n> ```\n> <i>\n"),
        ("a <script>x</script>", "> a &lt;script>x&lt;/script>  \n"),
        ("`Vec<u8>` \\<b> \\`<i>`", "> `Vec&lt;u8>` \\&lt;b> \\`&lt;i>`  \n"),
        ("a `\n` <b>`", "> a `  \n> ` &lt;b>`  \n"),
        ("> [Ana]: http://x", "> > [Ana]\\: http://x  \n"),
        ("[Ana]: https://example.com", "> [Ana]\\: https://example.com  \n"),
        ("# big\n\n> quoted\n- one", "> # big  \n> \n> > quoted  \n> - one  \n"),
        ("```one line```", "> ```one line```  \n"),
    ] {
        assert_eq!(markdown(text), written, "{text}");
    }
}

#[test]
fn no_message_name_or_title_is_markup_in_html() {
    let hostile = "</title><script>alert('x')</script>\"&";
    let message = said(hostile, hostile);
    let mut transcript = Transcript::new(Markup::Html, TimeZone::UTC, Language::English);

    let head = transcript.head(hostile, NOON);
    let body = transcript.entry(&Entry { answers: Some((Seq(1), Some(&message))), ..entry(3, &message) });

    for written in [&head, &body] {
        assert!(
            !written.contains("<script") && !written.contains("alert('x')") && written.contains("&lt;script&gt;"),
            "{written}"
        );
    }
    assert!(head.contains("default-src 'none'"));
    assert!(body.contains("<time datetime=\"2026-05-01T12:00:00+00:00\">12:00</time>"), "{body}");
}

#[test]
fn a_document_is_in_the_language_of_who_reads_it() {
    let answer = said("Aria", "Na gut.");
    let answer = Message { from: Author { role: Role::Companion, ..answer.from.clone() }, ..answer };
    let mut transcript = Transcript::new(Markup::Markdown, TimeZone::UTC, Language::German);

    let written = [transcript.head("Küche", NOON), transcript.entry(&entry(1, &answer)), transcript.foot(1, 2)].join("");

    for part in [
        "Exportiert am 2026-05-01 um 12:00.",
        "## 2026-05-01",
        "· KI",
        "1 Nachricht. Einträge, die nicht gelesen werden können: 2.",
    ] {
        assert!(written.contains(part), "{part} in {written}");
    }
}
