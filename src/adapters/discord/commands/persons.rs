//! What people decide about themselves: to be forgotten, and not to be heard.

use super::interaction::Where;
use super::{Desk, Said};
use crate::adapters::discord::snowflake::Snowflake;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{Forget, Forgotten};
use crate::ports::backend::stamp::Stamp;

impl Desk {
    pub(super) async fn forget(&self, sure: bool, here: &Where, person: Snowflake) -> Result<String, Said> {
        let place = place(here);
        if !sure {
            return Ok(format!(
                "This removes what you ever said {place} from the companions' memory, with what came from it. Your messages on Discord stay, and what \
                 companions answered.\n\
                 **It cannot be taken back.** To do it: `/tertulia forget me sure:True`"
            ));
        }
        let forget = Forget { guild: here.guild_id(), person: person.person().as_str().into(), answers: false };
        let forgotten = match self.backend.forget(forget).await {
            // They never said anything here, or were forgotten before.
            Err(Refused::NotFound(_)) => Forgotten::default(),
            outcome => outcome?,
        };
        tracing::info!(guild = %here.guild_id(), messages = forgotten.messages, "somebody was forgotten who asked for it");
        Ok(format!(
            "{}\nCopies that the operators of this bot made before may still hold it until they delete them.\n\
             What you say from now on is heard again. `/tertulia ignore me` keeps companions from listening to you.",
            told(&forgotten, place)
        ))
    }

    pub(super) async fn ignore(&self, on: bool, here: &Where, person: Snowflake) -> Result<String, Said> {
        let changed = self.ignoring.ignore(&here.guild_id(), &person.person(), on).await?;
        if changed {
            tracing::info!(guild = %here.guild_id(), ignored = on, "somebody changed whether companions listen to them");
        }
        let place = place(here);
        Ok(match (on, changed) {
            (true, true) => format!(
                "No companion {place} reads, counts or answers what you say from now on, until you take it back: `/tertulia ignore me switch:off`\n\
                 What you said before is still remembered; `/tertulia forget me` removes it."
            ),
            (true, false) => {
                format!("No companion {place} listens to you, as you wanted. To take it back: `/tertulia ignore me switch:off`")
            }
            (false, true) => format!("Companions {place} listen to you again. What you said meanwhile stays unknown to them."),
            (false, false) => format!("Companions {place} listen to you. To be left alone: `/tertulia ignore me`"),
        })
    }
}

fn place(here: &Where) -> &'static str {
    if here.is_direct() { "in this conversation" } else { "on this server" }
}

fn told(forgotten: &Forgotten, place: &str) -> String {
    let count = |count: u64, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    match forgotten.messages {
        0 => format!("Nothing that you said {place} is remembered."),
        messages => format!(
            "Forgotten: {} of yours, with {} and {} that came from them.\n{}",
            count(messages, "message", "messages"),
            count(forgotten.decisions, "decision", "decisions"),
            count(forgotten.summaries, "summary", "summaries"),
            in_file(forgotten.in_file_until)
        ),
    }
}

/// How long the words are in the store's file.
fn in_file(until: Option<Stamp>) -> String {
    match until {
        Some(Stamp(until)) => format!(
            "No companion and no page shows them any more. The operators of this bot could still find the words in its database file, until <t:{}:D> at the \
             latest.",
            until.as_micros() / 1_000_000
        ),
        None => "No companion and no page shows them any more. The operators of this bot could still find the words in its database file, until they \
                 compact it."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;

    #[test]
    fn who_is_forgotten_is_told_how_long_the_words_are_in_the_database_file() {
        let forgotten = |until: Option<u64>| {
            let in_file_until = until.map(|secs| Stamp(Moment::from_micros(secs * 1_000_000)));
            told(&Forgotten { messages: 2, in_file_until, ..Forgotten::default() }, "on this server")
        };

        assert!(forgotten(Some(1_777_636_800)).contains("in its database file, until <t:1777636800:D> at the latest"));
        assert!(forgotten(None).contains("in its database file, until they compact it"));
        assert!(!told(&Forgotten::default(), "on this server").contains("file"));
    }
}
