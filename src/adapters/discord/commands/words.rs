//! Sentences that several answers share: short, for people who know nothing of what is behind them.

use std::sync::Arc;

use super::interaction::Where;
use crate::adapters::discord::names;
use crate::adapters::discord::permissions::Need;
use crate::domain::moment::Moment;
use crate::ports::backend::Refused;

/// The longest message that Discord takes, in characters.
pub(super) const LONGEST: usize = 2_000;
/// What somebody else worded is shown up to so many characters.
const LONGEST_QUOTE: usize = 300;

/// Too many ask at once.
pub(super) const BUSY: &str = "Too many commands at once. Please try again in a few seconds.";
/// The command is newer or older than this server.
pub(super) const UNKNOWN: &str = "This command has changed in the meantime. Restart Discord (Ctrl+R) or wait a little, then try again. `/tertulia help` tells what there is.";
/// It was not found out in time who is meant.
pub(super) const NOT_SAID: &str = "That could not be passed on: this takes longer than it should. Please try again.";
/// Something broke.
pub(super) const BROKEN: &str = "Something went wrong here, and it is not your fault. Please try again; if it stays so, tell whoever runs the bot to look at its log.";
/// It takes too long.
pub(super) const TOO_LONG: &str = "This takes longer than it should. It may still be done: look again in a few minutes.";

/// What one can do here.
pub(super) const HELP: &str = "\
**Companions** are AI characters that live in channels. They read along, and decide by themselves when to say something. \
Say a companion's name, or reply to it, and it considers an answer at once. Where they do not read along, begin with a mention of the bot \
and the companion's name, or use `/tertulia say`.

For everybody:
`/tertulia say` – say something to a companion; everybody here sees it
*Apps > Ask a companion about this*, in the menu of a message
`/tertulia status` – who is here, and whether something is in the way
`/tertulia why` – why they spoke, or did not
`/tertulia ignore me` – they stop listening to you, until you take it back
`/tertulia forget me` – what you said is removed from their memory

For whoever may manage the channel:
`/tertulia join` and `/tertulia leave` – who lives here
`/tertulia talkativeness` – how readily they speak up
`/tertulia pause` – silence, for a while

But for what you say to a companion, only you see the answers to these commands.";

/// The bot is not told what is said, unless it is mentioned.
pub(super) const NOT_READING: &str = "Companions see only messages that mention the bot: Discord does not show them the others, nor replies to \
them. To be heard, mention the bot and name a companion, use `/tertulia say`, or in the menu of a message *Apps > Ask a companion about this*. \
Whoever runs the bot can change that: Developer Portal > the application > Bot > Message Content Intent > on, then start the bot again.";

/// Where a channel is, for whoever asks from there or from elsewhere.
pub(super) fn place(at: &Where, here: &Where) -> String {
    if at.channel == here.channel {
        return "here".to_owned();
    }
    format!("in {}", channel(at.channel.get()))
}

/// A channel that can be clicked.
pub(super) fn channel(id: u64) -> String {
    format!("<#{id}>")
}

/// A time that Discord shows to everybody in their own words: *two minutes ago*.
pub(super) fn when(at: Moment) -> String {
    format!("<t:{}:R>", at.as_micros() / 1_000_000)
}

/// A name that is shown as it is, whatever is in it.
pub(super) fn name(name: &str) -> String {
    format!("**{}**", verbatim(name))
}

/// Names in a sentence.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| verbatim(name)).collect();
    match names.as_slice() {
        [] => "nobody".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// What somebody else worded, shown as it is: in one line, marks without effect, nobody called.
pub(super) fn verbatim(text: &str) -> String {
    let cut: String = text.chars().take(LONGEST_QUOTE).collect();
    // Word by word: a name is shorter than a sentence.
    let words: Vec<_> = cut.split_whitespace().map(names::plain).filter(|word| !word.is_empty()).collect();
    let plain = words.join(" ");
    let mut shown = String::with_capacity(plain.len());
    for c in plain.chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '#' | '@' | '[' | ']' | ':' | '-') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// A sentence of ours about what is asked for, without what only operators understand: names of settings, in brackets.
pub(super) fn without_settings(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        let Some((inside, behind)) = after.split_once(')') else { break };
        shown.push_str(before);
        if !inside.contains(['.', '_', '/', '=']) {
            shown.push_str(" (");
            shown.push_str(inside);
            shown.push(')');
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// What is missing, as lines with what to click.
pub(super) fn needs(missing: &[Need]) -> Vec<String> {
    let told = missing.iter().map(|need| need.explanation());
    told.map(|(what, click)| format!("• {what} *What to do:* {click}")).collect()
}

/// Why the core does not do it, for whoever asked.
pub(super) fn sorry(refused: &Refused) -> String {
    let in_secs = |after: &Option<std::time::Duration>| {
        after.map_or_else(|| "in a minute".to_owned(), |after| format!("in {} seconds", after.as_secs().max(1)))
    };
    match refused {
        Refused::NotFound(_) => "That is not there any more. `/tertulia status` tells what is.".to_owned(),
        // Whatever names ids is for operators, and may be of another guild.
        Refused::Conflict(detail) | Refused::Invalid { detail, .. } | Refused::TooLarge(detail)
            if detail.contains("discord:") =>
        {
            "That cannot be done here.".to_owned()
        }
        Refused::Conflict(detail) | Refused::Invalid { detail, .. } | Refused::TooLarge(detail) => {
            format!("That cannot be done: {}.", verbatim(&without_settings(detail)).trim_end_matches('.'))
        }
        Refused::TooMany { retry_after, .. } => {
            format!("That was asked too often. Please try again {}.", in_secs(&Some(*retry_after)))
        }
        Refused::Unavailable { retry_after, .. } => {
            format!(
                "That cannot be done at the moment, and may or may not have been done. Please try again {}.",
                in_secs(retry_after)
            )
        }
        Refused::NotYet(_) => "This version of the bot cannot do that.".to_owned(),
        Refused::Damaged(_) | Refused::Broken(_) => BROKEN.to_owned(),
    }
}

/// As much of a text as Discord takes, in whole lines where they are short enough.
pub(super) fn fitted(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LONGEST - 2).collect();
    let end = cut.rfind('\n').filter(|end| *end > LONGEST / 2).unwrap_or(cut.len());
    format!("{}\n…", &cut[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_others_worded_has_no_effect() {
        assert_eq!(verbatim("Aria"), "Aria");
        assert_eq!(name("**@everyone** <@1>\nx"), "**\\*\\*\\@everyone\\*\\* \\<\\@1\\> x**");
        assert_eq!(verbatim("[a](https://b)"), "\\[a\\](https\\://b)");
    }

    #[test]
    fn operators_words_are_left_out() {
        for (text, expected) in [
            ("9 more messages, 7 s of quiet, or its name", "9 more messages, 7 s of quiet, or its name"),
            (
                "the guild's tokens of a day (models.guild_tokens_per_day), free again in 5 h",
                "the guild's tokens of a day, free again in 5 h",
            ),
            ("a (kind) word", "a (kind) word"),
            ("open (ended", "open (ended"),
        ] {
            assert_eq!(without_settings(text), expected);
        }
    }

    #[test]
    fn a_refusal_says_what_to_do_and_nothing_of_the_inside() {
        let hidden = "discord:1 /var/lib";
        for refused in [
            Refused::NotFound(hidden.into()),
            Refused::Damaged(hidden.into()),
            Refused::Broken(hidden.into()),
            Refused::Conflict(hidden.into()),
            Refused::NotYet(hidden.into()),
            Refused::Unavailable { detail: hidden.into(), retry_after: None },
            Refused::TooMany { detail: hidden.into(), retry_after: std::time::Duration::from_secs(7) },
        ] {
            let told = sorry(&refused);
            assert!(!told.contains("/var") && !told.contains("discord:") && told.ends_with('.'), "{told}");
        }
        let shared =
            Refused::Conflict("Aria and Ari share the name \"ari\"; two companions of one guild cannot share a name".into());
        assert!(sorry(&shared).contains("cannot share a name"));
    }

    #[test]
    fn the_help_fits_into_a_message() {
        assert_eq!(fitted(HELP), HELP);
    }

    proptest! {
        #[test]
        fn every_text_fits(text in "(\\PC|\n){0,3000}") {
            let fitted = fitted(&text);

            prop_assert!(fitted.chars().count() <= LONGEST);
        }

        #[test]
        fn what_is_shown_stays_in_its_line(text in any::<String>()) {
            let shown = verbatim(&text);

            let leaves = shown.contains(['\n', '\r', '\u{202e}']);
            prop_assert!(!leaves);
        }
    }
}
