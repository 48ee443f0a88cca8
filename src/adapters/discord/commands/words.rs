//! Texts shared by several answers. They are short, and written for users who do not know how the server works.

use std::sync::Arc;

use super::interaction::ChannelContext;
use crate::domain::moment::Moment;
use crate::names;
use crate::permissions::Need;
use crate::ports::backend::Refused;

/// The length limit of a Discord message, in characters.
pub(super) const LONGEST: usize = 2_000;
/// The limit of quoted characters of other people's text.
const LONGEST_QUOTE: usize = 300;

pub(super) const BUSY: &str = "Too many commands at once. Please try again in a few seconds.";
/// The answer to a command that is newer or older than this server.
pub(super) const UNKNOWN: &str = "This command has changed in the meantime. Restart Discord (Ctrl+R) or wait a little, then try again. `/tertulia help` lists the commands.";
/// A link follows this text.
pub(super) const NOT_A_MEMBER: &str =
    "The bot itself is not in this server, only its commands are. Somebody who may manage the server can invite it: ";
/// The answer if finding the companion takes too long.
pub(super) const NOT_SAID: &str = "Your message could not be passed on: this takes too long. Please try again.";
pub(super) const BROKEN: &str = "Something went wrong here, and it is not your fault. Please try again; if it happens again, tell the operator of the bot to look at its log.";
pub(super) const TOO_LONG: &str = "This takes too long. It may still be done: look again in a few minutes.";

pub(super) const TOO_LONG_FOR_A_FORM: &str = "That took too long to open a form. Please try again.";

pub(super) const HELP: &str = "\
**Companions** are AI characters in channels. They read along, and decide on their own when to say something. \
Say a companion's name, or reply to it, and it considers an answer at once. Where they do not read along, begin with a mention of the bot \
and the companion's name, or use `/tertulia say`.

For everybody:
`/tertulia say` – say something to a companion; everybody here sees it
*Apps > Ask a companion about this*, in the menu of a message
`/tertulia companion` – who they are, with pictures
`/tertulia status` – who is here, and whether there is a problem
`/tertulia why` – why they spoke, or did not; *Apps > Why?* in the menu of a message about that one
`/tertulia stop` – stop what is being written
`/tertulia again` – another answer in the place of the newest one
`/tertulia recall` – find what was said here
`/tertulia memory` – what they noted about you: see, correct and erase it
`/tertulia ignore me` – they stop listening to you, until you switch it off; also *Apps > Pause for me* in the menu of your name
`/tertulia forget me` – what you said is removed from their memory; *Apps > Forget this* removes one message
`/tertulia export-me` – what is kept of it, as a file that only you see
`/tertulia about` – what they are, who runs them, and what is kept

For people who may manage the channel:
`/tertulia setup` – everything below, with menus; `/tertulia roles` – who may address companions; `/tertulia own` – companions of your own
`/tertulia join` and `/tertulia leave` – add and remove companions
`/tertulia talkativeness` – how readily they speak up
`/tertulia pause` – silence, for a while
`/tertulia clear` – companions begin anew
`/tertulia voice join` and `/tertulia voice leave` – companions in the call of a voice channel; `/tertulia voice status` tells who is heard

Only you see the answers to these commands, except for what you say to a companion.";

/// Explains which data is stored and what users can do about it. Appended to the operator's own text.
pub(super) const ABOUT: &str = "\
Companions read what is said in their channels, and it is kept on the machine of the bot; AI models get what they need to answer it. \
A companion's message has the tag *APP* beside its name.
`/tertulia export-me` – what is kept of what you said, as a file that only you see
`/tertulia memory` – what they noted about you: see, correct and erase it, or say no
`/tertulia forget me` – what you said is removed from their memory
`/tertulia ignore me` – they stop listening to you
`/tertulia why` – why they spoke, or did not";

/// The answer to *Pause for me* in the menu of another user.
pub(super) const PAUSE_FOR_ME: &str = "*Pause for me* is about you alone: in the menu of your own name, it makes companions ignore you. \
They do not read, count or answer what you say, until you use `/tertulia ignore me switch:off`. Nothing was changed now. \
To silence companions for all in a channel: `/tertulia pause`";

/// The warning for a bot without the Message Content intent.
pub(super) const NOT_READING: &str = "Companions see only messages that mention the bot. Discord does not show them other messages, or replies to \
them. To reach them, mention the bot and name a companion, use `/tertulia say`, or in the menu of a message *Apps > Ask a companion about this*. \
The operator of the bot can change that: Developer Portal > the application > Bot > Message Content Intent > on, then restart the bot.";

/// A phrase for a channel, as seen from the user's channel.
pub(super) fn place(at: &ChannelContext, here: &ChannelContext) -> String {
    if at.channel == here.channel {
        return "here".to_owned();
    }
    format!("in {}", channel(at.channel.get()))
}

/// A link to a channel.
pub(super) fn channel(id: u64) -> String {
    format!("<#{id}>")
}

/// A time that Discord shows relative to now, in each reader's language.
pub(super) fn when(at: Moment) -> String {
    format!("<t:{}:R>", at.as_micros() / 1_000_000)
}

/// A name in bold, with its markup escaped.
pub(super) fn name(name: &str) -> String {
    format!("**{}**", verbatim(name))
}

pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| verbatim(name)).collect();
    match names.as_slice() {
        [] => "nobody".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Escapes text by other people: one line, without markup and mentions.
pub(crate) fn verbatim(text: &str) -> String {
    let cut: String = text.chars().take(LONGEST_QUOTE).collect();
    // Word by word, because `names::plain` cuts to the length of a name.
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

/// Removes names of settings in brackets from a sentence of ours, because only operators understand them.
pub(super) fn without_settings(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        let Some((inside, remainder)) = after.split_once(')') else { break };
        shown.push_str(before);
        if !inside.contains(['.', '_', '/', '=']) {
            shown.push_str(" (");
            shown.push_str(inside);
            shown.push(')');
        }
        rest = remainder;
    }
    shown.push_str(rest);
    shown
}

/// Lines for missing permissions, each with the steps to grant the permission.
pub(super) fn needs<'a>(missing: impl IntoIterator<Item = &'a Need>) -> Vec<String> {
    let needs = missing.into_iter().map(|need| need.explanation());
    needs.map(|(problem, click)| format!("• {problem} *What to do:* {click}")).collect()
}

/// Explains to the user why the backend refused the request.
pub(super) fn refusal_text(refused: &Refused) -> String {
    let in_secs = |after: &Option<std::time::Duration>| {
        after.map_or_else(|| "in a minute".to_owned(), |after| format!("in {} seconds", after.as_secs().max(1)))
    };
    match refused {
        Refused::NotFound(_) => "That does not exist any more. `/tertulia status` shows what does.".to_owned(),
        // A text with ids is meant for operators, and may name another guild.
        Refused::Conflict(detail) | Refused::Invalid { detail, .. } | Refused::TooLarge(detail)
            if detail.contains("discord:") =>
        {
            "That cannot be done here.".to_owned()
        }
        Refused::Conflict(detail) | Refused::Invalid { detail, .. } | Refused::TooLarge(detail) => {
            format!("That cannot be done: {}.", verbatim(&without_settings(detail)).trim_end_matches('.'))
        }
        Refused::TooMany { retry_after, .. } => {
            format!("Too many requests. Please try again {}.", in_secs(&Some(*retry_after)))
        }
        Refused::Unavailable { retry_after, .. } => {
            format!(
                "That cannot be done at the moment, and may or may not have been done. Please try again {}.",
                in_secs(retry_after)
            )
        }
        Refused::Damaged(_) | Refused::Broken(_) => BROKEN.to_owned(),
    }
}

/// Cuts a text to the limit of a Discord message, at the end of a line if possible.
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
    fn markup_of_others_has_no_effect() {
        assert_eq!(verbatim("Aria"), "Aria");
        assert_eq!(name("**@everyone** <@1>\nx"), "**\\*\\*\\@everyone\\*\\* \\<\\@1\\> x**");
        assert_eq!(verbatim("[a](https://b)"), "\\[a\\](https\\://b)");
    }

    #[test]
    fn names_of_settings_are_left_out() {
        for (text, expected) in [
            ("9 more messages, 7 s of quiet, or its name", "9 more messages, 7 s of quiet, or its name"),
            (
                "the guild's daily token budget (models.guild_tokens_per_day), free again in 5 h",
                "the guild's daily token budget, free again in 5 h",
            ),
            ("a (kind) word", "a (kind) word"),
            ("open (ended", "open (ended"),
        ] {
            assert_eq!(without_settings(text), expected);
        }
    }

    #[test]
    fn a_refusal_says_what_to_do_without_internal_details() {
        let hidden = "discord:1 /var/lib";
        for refused in [
            Refused::NotFound(hidden.into()),
            Refused::Damaged(hidden.into()),
            Refused::Broken(hidden.into()),
            Refused::Conflict(hidden.into()),
            Refused::Unavailable { detail: hidden.into(), retry_after: None },
            Refused::TooMany { detail: hidden.into(), retry_after: std::time::Duration::from_secs(7) },
        ] {
            let text = refusal_text(&refused);
            assert!(!text.contains("/var") && !text.contains("discord:") && text.ends_with('.'), "{text}");
        }
        let shared = Refused::conflict("Aria and Ari share the name \"ari\"; two companions of one guild cannot share a name");
        assert!(refusal_text(&shared).contains("cannot share a name"));
    }

    #[test]
    fn the_help_fits_into_one_message() {
        assert_eq!(fitted(HELP), HELP);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_text_fits(text in "(\\PC|\n){0,3000}") {
            let fitted = fitted(&text);

            prop_assert!(fitted.chars().count() <= LONGEST);
        }

        #[test]
        fn escaped_text_stays_in_one_line(text in any::<String>()) {
            let shown = verbatim(&text);

            let leaves = shown.contains(['\n', '\r', '\u{202e}']);
            prop_assert!(!leaves);
        }
    }
}
