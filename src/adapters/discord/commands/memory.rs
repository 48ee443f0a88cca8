//! `/tertulia memory`: what companions noted about the user here, and whether they may.

use super::interaction::ChannelContext;
use super::quoting::verbatim;
use super::text::{Text, say};
use super::words::when;
use super::{Answer, CommandHandler};
use crate::domain::id::Seq;
use crate::domain::note::fits;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::Person;
use crate::ports::backend::memory_service::NoteView;
use crate::snowflake::Snowflake;

/// The limit of listed notes, the newest of this channel.
const MOST_LISTED: usize = 12;

/// What the user wants of notes. Without anything, they are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MemoryOptions {
    /// The number of a note to correct, or to erase if there is no text.
    pub note: Option<u64>,
    pub text: Option<String>,
    /// Whether notes may be taken of the user.
    pub me: Option<bool>,
    /// Whether notes are taken on the server.
    pub server: Option<bool>,
    /// Whether notes of public channels are used in all channels of the server.
    pub across: Option<bool>,
}

impl CommandHandler {
    pub(super) async fn memory(&self, wanted: MemoryOptions, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let (guild, me) = (here.guild_id(), person.person());
        let memory = &self.backend.memory;
        if (wanted.server.is_some() || wanted.across.is_some()) && !here.user_may_manage_server() {
            return Err(Answer::Refused(say!(
                "Only people with the permission *Manage Server* can decide about the notes of this server."
            )));
        }
        if wanted.server == Some(false) && wanted.across == Some(true) {
            return Err(Answer::Refused(say!("`across:on` needs notes: choose `server:on`, too.")));
        }
        let mut said = Vec::new();
        if let Some(on) = wanted.server {
            memory.switch_notes(guild.clone(), None, on).await?;
            said.push(match on {
                true => say!(
                    "Companions on this server now take short notes of what people tell them. Please tell the others: everybody sees, corrects and \
                     erases theirs with `/tertulia memory`, and says no with `/tertulia memory me:off`."
                ),
                false => say!("Companions on this server take and use no notes any more. `/tertulia memory server:on` changes that."),
            });
        }
        if let Some(across) = wanted.across {
            memory.use_notes_across_rooms(guild.clone(), across).await?;
            said.push(match across {
                true => say!(
                    "What people say of themselves in channels that everybody here can read, companions may now use in all channels of this server. \
                     `/tertulia memory across:off` changes that."
                ),
                false => say!("Each note is used only in its channel."),
            });
        }
        if !said.is_empty() {
            return Ok(Text::lines(said));
        }
        if let Some(on) = wanted.me {
            memory.switch_notes(guild, Some(me), on).await?;
            return Ok(match on {
                true => say!("Companions here may take notes of what you tell them again."),
                false => say!(
                    "The notes by and about you, and those with your name, are erased, and no more are taken. `/tertulia memory me:on` changes that."
                ),
            });
        }
        let about = memory.notes_about(Person { guild, id: me.as_str().into() }).await?;
        let room = self.room(here).await?;
        let is_here = |note: &NoteView| room.as_ref().is_some_and(|room| *note.room == *room.id.as_str());
        let (here_noted, elsewhere): (Vec<_>, Vec<_>) = about.notes.iter().partition(|note| is_here(note));
        if let Some(number) = wanted.note {
            let (Some(room), Some(_)) = (&room, here_noted.iter().find(|note| note.seq == Seq(number))) else {
                return Err(no_such_note());
            };
            let (changed, done) = match wanted.text.as_deref().map(str::trim) {
                Some(text) if !fits(text) => return Err(Answer::Refused(say!("A note has at most 25 words."))),
                Some(text) => (
                    memory.correct_note(&room.id, Seq(number), text.into()).await,
                    say!("Note {number} is corrected.", number = number),
                ),
                None => (memory.erase_note(&room.id, Seq(number)).await, say!("Note {number} is erased.", number = number)),
            };
            return match changed {
                Err(Refused::NotFound(_)) => Err(no_such_note()),
                changed => changed.map_err(Answer::from).map(|()| done),
            };
        }
        if !about.on {
            return Ok(say!("No notes are taken of you, as you wanted. `/tertulia memory me:on` changes that."));
        }
        let is_on = match &room {
            Some(room) => memory.notes(&room.id).await?.on == Some(true),
            None => false,
        };
        Ok(listed(is_on, &here_noted, elsewhere.len()))
    }
}

fn no_such_note() -> Answer {
    Answer::Refused(say!(
        "There is no such note about you here. `/tertulia memory` lists those that there are, with their numbers."
    ))
}

fn listed(is_on: bool, here: &[&NoteView], elsewhere: usize) -> Text {
    let head = match (is_on, here.is_empty()) {
        (false, _) => say!(
            "Companions take no notes here. Somebody who may manage the server can change that: `/tertulia memory server:on`"
        ),
        (true, true) => say!("Companions have noted nothing about you in this channel."),
        (true, false) => say!("**What companions noted by or about you in this channel**"),
    };
    let skipped = here.len().saturating_sub(MOST_LISTED);
    let line = |note: &&NoteView| Text::Plain(format!("`{}` {} ({})", note.seq, verbatim(&note.text), when(note.at.0)));
    let lines = here.iter().skip(skipped).map(line);
    let older = (skipped > 0).then(|| say!("… and {count} older ones", count = skipped));
    let other = (elsewhere > 0).then(|| say!("In other channels there are more: {count}. Ask there.", count = elsewhere));
    let how = (!here.is_empty()).then(|| {
        say!(
            "`/tertulia memory note:…` erases one, with `text:` it is corrected. `/tertulia memory me:off` erases all and stops them."
        )
    });
    Text::lines([head].into_iter().chain(lines).chain(older).chain(other).chain(how))
}
