//! The commands by which users control their own data: `forget me`, `ignore me`, `export-me`.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use serde::Deserialize;

use super::interaction::ChannelContext;
use super::registered::SURE_FORGET;
use super::text::{Text, say};
use super::{Answer, CommandHandler, words};
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{Forget, Forgotten, Person};
use crate::ports::backend::stamp::Stamp;
use crate::rest::File;
use crate::snowflake::Snowflake;

/// The size limit of a file, in bytes. Discord's default limit was 10 MiB and is now 20 MiB (Discord's documentation, "API Reference", "Uploading
/// Files").
const LARGEST_FILE: usize = 8_000_000;
/// The separator between the entries of a file.
const SEPARATOR: &str = ",\n";

/// The time of an exported line, in a format that sorts by time.
#[derive(Deserialize)]
struct At {
    #[serde(default)]
    at: String,
}

impl CommandHandler {
    pub(super) async fn forget(&self, sure: bool, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        if !sure {
            let all = by_place(
                here.is_direct(),
                say!(
                    "This removes everything that you said on this server from the companions' memory, with everything derived from it."
                ),
                say!(
                    "This removes everything that you said in this conversation from the companions' memory, with everything derived from it."
                ),
            );
            let rest = say!("Your messages on Discord stay, and the companions' answers.\n**This cannot be undone.**");
            return Ok(Answer::Question {
                text: Text::sentences([all, rest]),
                button: say!("Forget what I said"),
                id: SURE_FORGET,
            });
        }
        let forget = Forget { guild: here.guild_id(), person: person.person().as_str().into(), answers: false };
        let forgotten = match self.backend.maintenance.forget(forget).await {
            // The user has no messages here, or was forgotten before.
            Err(Refused::NotFound(_)) => Forgotten::default(),
            outcome => outcome?,
        };
        tracing::info!(guild = %here.guild_id(), messages = forgotten.messages, "a person was forgotten on request");
        Ok(Answer::Done(Text::lines([
            describe(&forgotten, here.is_direct()),
            say!(
                "Backups that were made before may still contain it: those of the server for up to a day, others until the operators of this bot delete them.\n\
                 Companions read what you say from now on. `/tertulia ignore me` keeps companions from listening to you."
            ),
        ])))
    }

    /// Exports the user's data as a file.
    pub(super) async fn export(&self, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        let slot = self.files.acquire(here.guild_id()).map_err(|_| Answer::Refused(words::busy()))?;
        let person = Person { guild: here.guild_id(), id: person.person().as_str().into() };
        let mut exported = match self.backend.records.export_person(person).await {
            Err(Refused::NotFound(_)) => {
                return Ok(Answer::Done(by_place(
                    here.is_direct(),
                    say!("Nothing that you said on this server is kept, and nothing else about you."),
                    say!("Nothing that you said in this conversation is kept, and nothing else about you."),
                )));
            }
            lines => lines?,
        };
        let (mut lines, mut bytes, mut left_out, mut is_damaged) = (BTreeMap::new(), 0, 0, false);
        while let Some(line) = exported.next().await {
            let line = match line {
                Ok(line) => line,
                // The error is the last item of the stream.
                Err(Refused::Damaged(_)) => {
                    is_damaged = true;
                    break;
                }
                Err(refused) => return Err(refused.into()),
            };
            bytes += line.len() + SEPARATOR.len();
            let at = serde_json::from_str(&line).map(|At { at }| at).unwrap_or_default();
            lines.insert((at, lines.len() + left_out), line);
            while bytes > LARGEST_FILE
                && let Some((_, oldest)) = lines.pop_first()
            {
                bytes -= oldest.len() + SEPARATOR.len();
                left_out += 1;
            }
        }
        tracing::info!(guild = %here.guild_id(), left_out, "a person's own data was handed out on request");
        let kept = by_place(
            here.is_direct(),
            say!("This is what is kept of what you said on this server, the newest first."),
            say!("This is what is kept of what you said in this conversation, the newest first."),
        );
        let about = say!(
            "Only you see it: save the file, because this answer does not stay. What others said is not in it, and what was derived from your messages \
             is not either; `/tertulia forget me` removes that, too."
        );
        let more = (left_out > 0).then(|| {
            say!(
                "**Older messages do not fit into the file: {count}.** The operators of this bot can give you all of them.",
                count = left_out
            )
        });
        let damage =
            is_damaged.then(|| say!("**Something cannot be read, and is missing.** Please tell the operators of this bot."));
        let text = Text::lines([Text::sentences([kept, about])].into_iter().chain(more).chain(damage));
        let newest_first: Vec<String> = lines.into_values().rev().collect();
        let file = File { name: "my-data.json", text: format!("[\n{}\n]\n", newest_first.join(SEPARATOR)).into() };
        Ok(Answer::File { text, file, _slot: slot })
    }

    pub(super) async fn ignore(&self, on: bool, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let changed = self.opt_outs.ignore(&here.guild_id(), &person.person(), on).await?;
        if on {
            self.backend.reminders.erase_reminders(&here.guild_id(), None, &person.person()).await?;
        }
        if changed {
            tracing::info!(guild = %here.guild_id(), ignored = on, "a person changed whether companions listen to them");
        }
        Ok(match (on, changed) {
            (true, true) => Text::lines([
                by_place(
                    here.is_direct(),
                    say!(
                        "No companion on this server reads, counts or answers what you say from now on, until you use `/tertulia ignore me switch:off`."
                    ),
                    say!(
                        "No companion in this conversation reads, counts or answers what you say from now on, until you use `/tertulia ignore me switch:off`."
                    ),
                ),
                say!("What you said before is still remembered; `/tertulia forget me` removes it."),
            ]),
            (true, false) => by_place(
                here.is_direct(),
                say!(
                    "No companion on this server listens to you, as you wanted. To change that: `/tertulia ignore me switch:off`"
                ),
                say!(
                    "No companion in this conversation listens to you, as you wanted. To change that: `/tertulia ignore me switch:off`"
                ),
            ),
            (false, true) => by_place(
                here.is_direct(),
                say!("Companions on this server listen to you again. They do not learn what you said meanwhile."),
                say!("Companions in this conversation listen to you again. They do not learn what you said meanwhile."),
            ),
            (false, false) => by_place(
                here.is_direct(),
                say!("Companions on this server listen to you. To be left alone: `/tertulia ignore me`"),
                say!("Companions in this conversation listen to you. To be left alone: `/tertulia ignore me`"),
            ),
        })
    }
}

/// A person's data is kept by server. Direct messages are a conversation of their own.
fn by_place(is_direct: bool, on_server: Text, in_conversation: Text) -> Text {
    if is_direct { in_conversation } else { on_server }
}

fn describe(forgotten: &Forgotten, is_direct: bool) -> Text {
    match forgotten.messages {
        0 => by_place(
            is_direct,
            say!("Nothing that you said on this server is remembered."),
            say!("Nothing that you said in this conversation is remembered."),
        ),
        messages => Text::lines([
            say!(
                "Forgotten: your messages ({messages}), with the decisions ({decisions}) and summaries ({summaries}) that were derived from them.",
                messages = messages,
                decisions = forgotten.decisions,
                summaries = forgotten.summaries
            ),
            file_notice(forgotten.in_file_until),
        ]),
    }
}

/// How long the words remain in the database and in backups.
fn file_notice(until: Option<Stamp>) -> Text {
    match until {
        Some(Stamp(until)) => say!(
            "No companion and no page shows them any more. The operators of this bot could still find the words in its database, until {date} at the \
             latest; in the backups that are made of it; and in older backups that they made.",
            date = format!("<t:{}:D>", until.as_micros() / 1_000_000)
        ),
        None => say!(
            "No companion and no page shows them any more. The operators of this bot could still find the words in its database, until they have cleaned \
             it up; in the backups that are made of it; and in older backups that they made."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;

    #[test]
    fn the_answer_says_how_long_forgotten_words_stay_in_the_database() {
        let forgotten = |until: Option<u64>| {
            let in_file_until = until.map(|secs| Stamp(Moment::from_micros(secs * 1_000_000)));
            describe(&Forgotten { messages: 2, in_file_until, ..Forgotten::default() }, false).in_language("en-US")
        };

        assert!(forgotten(Some(1_777_636_800)).contains("in its database, until <t:1777636800:D> at the latest"));
        assert!(forgotten(None).contains("in its database, until they have cleaned it up"));
        assert!(!describe(&Forgotten::default(), false).in_language("en-US").contains("database"));
    }
}
