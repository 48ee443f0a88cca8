//! Stores opt-outs.

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::conversation::Notice;
use crate::domain::id::{GuildId, PersonId, Ward};
use crate::domain::voice::utterance;
use crate::journal::key;
use crate::journal::record::{OptOutRecord, encode};
use crate::ports::backend::Refused;
use crate::ports::opt_out::OptOut;
use crate::ports::store::Write;

/// Stores opt-outs durably. Earlier messages of the person stay in the journal and can still be deleted. An opt-out remains in
/// force when the person's messages are deleted.
pub struct OptOutService {
    context: ActorContext,
    /// Held during a change, so that changes do not overlap.
    changes: Mutex<()>,
}

impl OptOutService {
    pub fn new(context: ActorContext) -> Self {
        Self { context, changes: Mutex::default() }
    }
}

impl OptOutService {
    /// Notifies the running channels of the guild, because the person may be in their voice calls.
    fn tell_calls(&self, guild: &GuildId, person: &PersonId, ignored: bool) {
        for (channel, membership) in self.context.memberships.all() {
            if membership.guild == *guild {
                self.context.calls.change_opt_out(&channel, person, ignored);
                let user = person.clone();
                let input = if ignored { utterance::Input::OptedOut { user } } else { utterance::Input::OptedIn { user } };
                // A channel that is not running reads the opt-outs when it starts.
                self.context
                    .directory
                    .hand_over(&ChannelActorKey(channel), ChannelMessage::Received(Received::Voice(Notice::Call(input))));
            }
        }
    }
}

#[async_trait]
impl OptOut for OptOutService {
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool {
        self.context.opt_outs.holds(guild, person)
    }

    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused> {
        let _lock = self.changes.lock().await;
        if self.is_ignored(guild, person) == ignored {
            return Ok(false);
        }
        let key = key::opt_out(guild, person);
        let write = if ignored {
            let record = OptOutRecord { guild: guild.clone(), person: person.clone(), since: self.context.clock.now() };
            Write::Put(key, encode(&record))
        } else {
            Write::Remove(key)
        };
        // A person who opts in again receives the AI disclosure again.
        let writes = [write].into_iter().chain(self.context.told.removal(guild, person)).collect();
        write_meta(&self.context, Ward::of(guild), writes).await.map_err(not_now)?;
        self.context.told.remove(guild, person);
        if ignored {
            self.context.opt_outs.insert(guild, [person], ());
            self.context.sent_prompts.forget_guild(guild);
        } else {
            self.context.opt_outs.remove(guild, person);
        }
        self.tell_calls(guild, person, ignored);
        Ok(true)
    }
}

fn not_now(error: WriteError) -> Refused {
    let detail = match error {
        WriteError::Unknown => "it is not known whether this was stored, try again".to_owned(),
        error => format!("this cannot be stored at the moment, try again: {error}"),
    };
    Refused::unavailable(detail)
}
