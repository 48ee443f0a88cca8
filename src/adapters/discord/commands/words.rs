//! Texts shared by several answers. They are short, and written for users who do not know how the server works.

use std::sync::Arc;

use super::interaction::ChannelContext;
use super::quoting::verbatim;
use super::text::{Text, say, translations};
use crate::domain::moment::Moment;
use crate::permissions::Need;
use crate::ports::backend::Refused;

/// The length limit of a Discord message, in characters.
pub(super) const LONGEST: usize = 2_000;
pub(super) fn busy() -> Text {
    say!("Too many commands at once. Please try again in a few seconds.")
}

/// The answer to a command that is newer or older than this server.
pub(super) fn unknown() -> Text {
    say!(
        "This command has changed in the meantime. Restart Discord (Ctrl+R) or wait a little, then try again. `/tertulia help` lists the commands."
    )
}

pub(super) fn not_a_member(link: String) -> Text {
    say!(
        "The bot itself is not in this server, only its commands are. Somebody who may manage the server can invite it: {link}",
        link = link
    )
}

/// The answer if finding the companion takes too long.
pub(super) fn not_said() -> Text {
    say!("Your message could not be passed on: this takes too long. Please try again.")
}

pub(super) fn broken() -> Text {
    say!(
        "Something went wrong here, and it is not your fault. Please try again; if it happens again, tell the operator of the bot to look at its log."
    )
}

pub(super) fn too_long() -> Text {
    say!("This takes too long. It may still be done: look again in a few minutes.")
}

pub(super) fn too_late_for_a_form() -> Text {
    say!("That took too long to open a form. Please try again.")
}

pub(super) fn opted_out() -> Text {
    say!("You asked companions not to listen to you. `/tertulia ignore me switch:off` changes that.")
}

pub(super) fn help() -> Text {
    Text::lines([
        say!(
            "**Companions** are AI characters in channels. They read along, and decide on their own when to say something. \
             Say a companion's name, or reply to it, and it considers an answer at once. Where they do not read along, begin with a mention of the bot \
             and the companion's name, or use `/tertulia say`."
        ),
        blank(),
        say!("For everybody:"),
        say!("`/tertulia say` – say something to a companion; everybody here sees it"),
        say!("*Apps > Ask a companion about this*, in the menu of a message"),
        say!("`/tertulia companion` – who they are, with pictures"),
        say!("`/tertulia status` – who is here, and whether there is a problem"),
        say!("`/tertulia why` – why they spoke, or did not; *Apps > Why?* in the menu of a message about that one"),
        say!("`/tertulia stop` – stop what is being written"),
        say!("`/tertulia again` – another answer in the place of the newest one"),
        say!("`/tertulia recall` – find what was said here"),
        say!("`/tertulia memory` – what they noted about you: see, correct and erase it"),
        say!("`/tertulia reminders` – your reminders here"),
        say!(
            "`/tertulia ignore me` – they stop listening to you, until you switch it off; also *Apps > Pause for me* in the menu of your name"
        ),
        say!("`/tertulia forget me` – what you said is removed from their memory; *Apps > Forget this* removes one message"),
        say!("`/tertulia export-me` – what is kept of it, as a file that only you see"),
        say!("`/tertulia about` – what they are, who runs them, and what is kept"),
        blank(),
        say!("For people who may manage the channel:"),
        say!(
            "`/tertulia setup` – everything below, with menus; `/tertulia roles` – who may address companions; `/tertulia own` – companions of your own"
        ),
        say!("`/tertulia join` and `/tertulia leave` – add and remove companions"),
        say!("`/tertulia talkativeness` – how readily they speak up"),
        say!("`/tertulia pause` – silence, for a while"),
        say!("`/tertulia clear` – companions begin anew"),
        say!(
            "`/tertulia voice join` and `/tertulia voice leave` – companions in the call of a voice channel; `/tertulia voice status` tells who is heard"
        ),
        blank(),
        say!("Only you see the answers to these commands, except for what you say to a companion."),
    ])
}

/// Explains what companions are, who runs them, which data is stored, and what users can do about it.
pub(super) fn about(operator: Option<&str>, privacy: Option<&str>) -> Text {
    let operator = operator.map(|operator| say!("This bot is run by {operator}.", operator = verbatim(operator)));
    // In angle brackets, an address gets no preview.
    let privacy = privacy.map(|privacy| say!("Privacy: {address}", address = format!("<{privacy}>")));
    Text::lines([
        Text::sentences([say!("Companions here are AI, not people.")].into_iter().chain(operator).chain(privacy)),
        blank(),
        what_is_kept(),
        say!("`/tertulia export-me` – what is kept of what you said, as a file that only you see"),
        say!("`/tertulia memory` – what they noted about you: see, correct and erase it, or say no"),
        say!("`/tertulia forget me` – what you said is removed from their memory"),
        say!("`/tertulia ignore me` – they stop listening to you"),
        say!("`/tertulia why` – why they spoke, or did not"),
    ])
}

pub(super) fn what_is_kept() -> Text {
    say!(
        "Companions read what is said in their channels, and it is kept on the machine of the bot; AI models get what they need to answer it. \
         A companion's message has the tag *APP* beside its name."
    )
}

/// The answer to a person who asks for the help that was offered to somebody else.
pub(super) fn help_of_another() -> Text {
    say!("This is for somebody else. If you need help, too: https://findahelpline.com")
}

/// The answer to *Pause for me* in the menu of another user.
pub(super) fn pause_for_me() -> Text {
    say!(
        "*Pause for me* is about you alone: in the menu of your own name, it makes companions ignore you. \
         They do not read, count or answer what you say, until you use `/tertulia ignore me switch:off`. Nothing was changed now. \
         To silence companions for all in a channel: `/tertulia pause`"
    )
}

/// The warning for a bot without the Message Content intent.
pub(super) fn not_reading() -> Text {
    say!(
        "Companions see only messages that mention the bot. Discord does not show them other messages, or replies to \
         them. To reach them, mention the bot and name a companion, use `/tertulia say`, or in the menu of a message *Apps > Ask a companion about this*. \
         The operator of the bot can change that: Developer Portal > the application > Bot > Message Content Intent > on, then restart the bot."
    )
}

/// A line without text.
pub(super) const fn blank() -> Text {
    Text::Plain(String::new())
}

/// A link to a channel, unless it is the user's channel.
pub(super) fn elsewhere(at: &ChannelContext, here: &ChannelContext) -> Option<String> {
    (at.channel != here.channel).then(|| channel(at.channel.get()))
}

/// A link to a channel.
pub(super) fn channel(id: u64) -> String {
    format!("<#{id}>")
}

/// A time that Discord shows relative to now, in each reader's language.
pub(super) fn when(at: Moment) -> String {
    format!("<t:{}:R>", at.as_micros() / 1_000_000)
}

/// Lists names: "Aria, Ben and Cleo".
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> Text {
    enumerated(names.into_iter().map(|name| verbatim(name).into()).collect())
}

/// Lists texts: "Aria, Ben (muted) and Cleo".
pub(super) fn enumerated(mut texts: Vec<Text>) -> Text {
    let last = texts.pop();
    let before = texts.into_iter().reduce(|list, next| say!("{list}, {next}", list = list, next = next));
    match (before, last) {
        (Some(list), Some(last)) => say!("{list} and {last}", list = list, last = last),
        (None, Some(only)) => only,
        _ => say!("nobody"),
    }
}

/// Lines for missing permissions, each with the steps to grant the permission.
pub(super) fn needs<'a>(missing: impl IntoIterator<Item = &'a Need>) -> Vec<Text> {
    missing.into_iter().map(|need| need_text(*need).bullet()).collect()
}

fn need_text(need: Need) -> Text {
    let (problem, click) = need.explanation();
    say!("{problem} *What to do:* {click}", problem = Text::known(problem), click = Text::known(click))
}

/// Explains why Discord refused a message: our explanation in one or two known texts, and Discord's own words.
pub(super) fn discord_refusal(why: &str) -> Text {
    let (explanation, quoted) = why.split_at(why.find(" (Discord said").unwrap_or(why.len()));
    let is_known = |text: &str| translations(text).is_some();
    let mut ends = explanation.match_indices(". ").map(|(at, _)| explanation.split_at(at + 1));
    let explanation = match ends.find(|(problem, click)| is_known(problem) && is_known(click.trim_start())) {
        Some((problem, click)) => Text::sentences([problem, click.trim_start()].map(|text| Text::known(text.to_owned()))),
        None => Text::known(explanation.to_owned()),
    };
    Text::Joined(vec![explanation, Text::Plain(quoted.to_owned())], "")
}

/// Explains to the user why the backend refused the request.
pub(super) fn refusal_text(refused: &Refused) -> Text {
    match refused {
        Refused::NotFound(_) => say!("That does not exist any more. `/tertulia status` shows what does."),
        // A text with ids is meant for operators, and may name another guild.
        Refused::Conflict(detail) | Refused::Invalid { detail, .. } | Refused::TooLarge(detail)
            if detail.contains("discord:") =>
        {
            say!("That cannot be done here.")
        }
        Refused::Conflict(detail) | Refused::Invalid { detail, .. } | Refused::TooLarge(detail) => {
            say!("That cannot be done: {reason}.", reason = Text::Detail(detail.clone()))
        }
        Refused::TooMany { retry_after, .. } => {
            say!("Too many requests. Please try again in {seconds} s.", seconds = retry_after.as_secs().max(1))
        }
        Refused::Unavailable { retry_after: Some(after), .. } => say!(
            "That cannot be done at the moment, and may or may not have been done. Please try again in {seconds} s.",
            seconds = after.as_secs().max(1)
        ),
        Refused::Unavailable { retry_after: None, .. } => {
            say!("That cannot be done at the moment, and may or may not have been done. Please try again in a minute.")
        }
        Refused::Damaged(_) | Refused::Broken(_) => broken(),
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
    use serde_json::json;

    use super::*;
    use crate::ports::backend::Detail;

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
            let text = refusal_text(&refused).in_language("de");
            assert!(!text.contains("/var") && !text.contains("discord:") && text.ends_with('.'), "{text}");
        }
        let shared = Refused::conflict("Aria and Ari share the name \"ari\"; two companions of one guild cannot share a name");
        assert!(refusal_text(&shared).in_language("fr").contains("cannot share a name"));
    }

    #[test]
    fn a_refusal_of_the_backend_is_in_the_language_of_the_reader() {
        let refused = Refused::conflict(Detail::of("refusals.too_many_companions", json!({ "count": 9, "most": 8 })));
        let text = |language| refusal_text(&refused).in_language(language);

        assert!(
            text("de").contains("höchstens 8") && text("es-419").contains("como máximo"),
            "{} {}",
            text("de"),
            text("es-419")
        );
        assert!(text("ja").contains("at most 8"), "without a translation it is in English: {}", text("ja"));
    }

    #[test]
    fn names_are_listed_as_in_each_language() {
        let list = |count: usize| listed(&["Aria", "B*o", "Cleo"].map(Arc::from)[..count]);

        assert_eq!(
            [0, 1, 2, 3].map(|count| list(count).in_language("en-GB")),
            ["nobody", "Aria", "Aria and B\\*o", "Aria, B\\*o and Cleo"]
        );
        assert_eq!(
            (list(3).in_language("de"), list(3).in_language("ja")),
            ("Aria, B\\*o und Cleo".to_owned(), "Aria、B\\*o、Cleo".to_owned())
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_text_fits(text in "(\\PC|\n){0,3000}") {
            let fitted = fitted(&text);

            prop_assert!(fitted.chars().count() <= LONGEST);
        }
    }
}
