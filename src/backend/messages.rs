//! Accepts messages of rooms, their edits and deletions, and the votes and statements of external companions. Stops and repeats replies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ractor::{ActorRef, RpcReplyPort};
use serde_json::json;
use tokio::sync::oneshot;

use super::ActorBackend;
use super::errors::invalid;
use super::external::{Unanswered, answered, call, not_known};
use crate::actors::erasure::deletion::{Change, change_message, delete_messages};
use crate::actors::inbound::Replied;
use crate::actors::messages::channel::{ChannelMessage, Inspection};
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::turn_taking_manager::{ManagerMessage, VoteError};
use crate::actors::runtime::actor_keys::{ChannelActorKey, SwitchboardKey, TurnTakingManagerKey};
use crate::actors::writer::requests::{fence, look};
use crate::domain::address::at_names;
use crate::domain::attachment::with_lines;
use crate::domain::conversation::NotChosen;
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, PersonId, Seq, Ticket};
use crate::domain::message::{Author, ImportedMessage, Message, Role};
use crate::domain::moment::Moment;
use crate::domain::split::split;
use crate::domain::vote::State;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::redaction::is_redacted;
use crate::ports::audio::RecordingRefused;
use crate::ports::backend::guest_service::{Amount, GuestService as _, Visit};
use crate::ports::backend::message_service::MessageService;
use crate::ports::backend::messages::{
    Approver, CallView, Choice, Chosen, Drafted, Drafting, Edit, Greeting, HistoryQuery, Imported, LeftOut, Words,
};
use crate::ports::backend::record_service::RecordService as _;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::chat_platform::{NotSent, notice};
use crate::ports::inbound_events::{InboundMessage, ReplyTo};
use crate::ports::store::Write;

/// How often, and after which pause, a sleeping channel is looked for once it was woken.
const WAKE_TRIES: u32 = 40;
const WAKE_PAUSE: Duration = Duration::from_millis(50);
/// How often a message of an import is handed to a channel that is busy.
const IMPORT_TRIES: u32 = 60;
/// The longest voice note that is recorded on the page. The browser ends it a little earlier.
const LONGEST_RECORDED: Duration = Duration::from_secs(125);

/// The kind of a message that nobody says.
const SCENE: &str = "scene";

#[async_trait]
impl MessageService for ActorBackend {
    async fn say(&self, room: &RoomId, mut message: InboundMessage) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        // The first message with an id counts, whatever the text of a second one.
        if let Some(id) = &message.id
            && let Some(known) = self.known_as(&channel_key, id).await?
        {
            return Ok(known);
        }
        let replied = match message.reply_to.as_ref().and_then(ReplyTo::recorded) {
            Some(seq) => Some(self.replied_to(&channel_key, seq).await?),
            None => None,
        };
        self.measure_recording(&mut message)?;
        let own_words = message.own_words.as_ref().unwrap_or(&message.text);
        message.mentions.extend(at_names(own_words).into_iter().map(Arc::from));
        let accepted = self.inbound.say(&channel_key, message, replied).await?;
        accepted.map(|accepted| accepted.seq).ok_or_else(|| Refused::unreadable("a person's message was not admitted"))
    }

    async fn namesake(&self, room: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        Ok(self.context.memberships.names(&channel_key.guild).and_then(|names| names.namesake(name).cloned()))
    }

    async fn edit(&self, room: &RoomId, seq: Seq, edit: Edit) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.change_posted(room, &channel_key, seq, Some(&edit.text)).await?;
        let files = self.reader().said(&channel_key, seq).await?.map(|message| message.attachments).unwrap_or_default();
        let uploaded: Vec<_> = files.into_iter().filter(|file| file.stored().is_some()).collect();
        let change = Change::Text(with_lines(&edit.text, &uploaded));
        let gone = || Refused::not_found(Detail::key("refusals.message_deleted"));
        change_message(&self.context, &channel_key, seq, change).await?.then_some(seq).ok_or_else(gone)
    }

    async fn delete(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.change_posted(room, &channel_key, seq, None).await?;
        delete_messages(&self.context, &channel_key, &BTreeSet::from([seq])).await?;
        Ok(seq)
    }

    async fn stop_reply(&self, room: &RoomId, companion: &CompanionId) -> Result<(), Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        if !membership.companions.contains(companion) {
            return Err(Refused::not_found(self.not_in_room(companion, room)));
        }
        let companion = companion.clone();
        let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel)) else {
            return Err(VoteError::NotWriting { companion }.into());
        };
        answered(call(|reply| channel.cast(ChannelMessage::StopReply { companion, reply })).await)
    }

    async fn answer_again(&self, room: &RoomId, statement: Seq, continues: bool, by: Option<&PersonId>) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.said(room, &channel_key, statement).await?;
        let conversation = self.current_state(&channel_key).await?.inspection.conversation;
        conversation.check_again(statement).map_err(|not_again| Refused::conflict(Detail::key(not_again.as_str())))?;
        if let Some(person) = by {
            let mut is_answered = false;
            for seq in conversation.answered_by(statement) {
                let message = self.said(room, &channel_key, *seq).await;
                is_answered |=
                    message.is_ok_and(|message| message.from.role == Role::Person && *message.from.id == *person.as_str());
            }
            if !is_answered {
                return Err(Refused::conflict(Detail::key("refusals.answers_others")));
            }
        }
        self.accept(&channel_key, Event::again(continues), None).await.map(drop)
    }

    async fn stand(&self, room: &RoomId, statement: Seq, version: usize) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let message = self.said(room, &channel_key, statement).await?;
        if !self.current_state(&channel_key).await?.inspection.conversation.is_newest_statement(statement) {
            return Err(Refused::conflict(Detail::key("refusals.not_newest_version")));
        }
        let texts = message.versions.map(|versions| versions.texts).unwrap_or_default();
        let unknown = || invalid("version", Detail::of("refusals.no_version", json!({ "count": texts.len().max(1) })));
        let text = texts.get(version).ok_or_else(unknown)?;
        self.change_posted(room, &channel_key, statement, Some(text)).await?;
        change_message(&self.context, &channel_key, statement, Change::Version(version)).await?;
        Ok(())
    }

    async fn call(&self, room: &RoomId, call: Ticket, by: Approver) -> Result<CallView, Refused> {
        self.call_of_tool(room, call, by).await
    }

    async fn decide_call(&self, room: &RoomId, call: Ticket, by: Approver, is_confirmed: bool) -> Result<(), Refused> {
        Self::decide_call(self, room, call, by, is_confirmed).await
    }

    async fn choose(&self, room: &RoomId, choice: Choice) -> Result<Chosen, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        self.check_writable(room)?;
        let Choice { companion, everybody, by } = choice;
        let Inspection { conversation, used_up, over_addresses, .. } = self.current_state(&channel_key).await?.inspection;
        let helps_at_risk = self.context.in_force().safety.crisis;
        let check = |companion: &CompanionId| {
            self.check_able(room, &membership, companion)?;
            conversation.check_chosen(companion, helps_at_risk).map_err(|reason| Detail::key(reason.as_str()))
        };
        let (mut companions, mut left_out) = (Vec::new(), Vec::new());
        match companion {
            Some(companion) if !everybody => {
                if !membership.companions.contains(&companion) {
                    return Err(Refused::not_found(self.not_in_room(&companion, room)));
                }
                check(&companion).map_err(Refused::conflict)?;
                companions.push(companion);
            }
            None if everybody => {
                for companion in membership.companions.iter().cloned() {
                    match check(&companion) {
                        Ok(()) => companions.push(companion),
                        Err(detail) => left_out.push(LeftOut { companion, why: detail.why(), detail: detail.to_string() }),
                    }
                }
            }
            _ => return Err(invalid("companion", Detail::key("refusals.one_or_everybody"))),
        }
        if companions.is_empty() {
            return Err(Refused::conflict(Detail::key("refusals.nobody_chosen")));
        }
        let by = by.as_deref().map(PersonId::from);
        if used_up.is_some() || by.as_ref().is_some_and(|by| over_addresses.contains(by)) {
            return Err(Refused::conflict(Detail::key("refusals.chosen_over_limit")));
        }
        let event = Event::Chosen { companions: companions.clone(), everybody, by };
        let seq = self.accept(&channel_key, event, None).await?.seq;
        Ok(Chosen { seq, companions, left_out })
    }

    async fn draft(&self, room: &RoomId, drafting: Drafting, visit: Option<&Visit>) -> Result<Drafted, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        let Drafting { companion, from } = drafting;
        if !membership.companions.contains(&companion) || membership.is_external(&companion) {
            return Err(Refused::not_found(self.not_in_room(&companion, room)));
        }
        self.check_adults(&membership, &companion).map_err(Refused::conflict)?;
        let channel = self.running(&channel_key).await?;
        let Inspection { conversation, used_up, .. } = self.current_state(&channel_key).await?.inspection;
        if conversation.check_chosen(&companion, self.context.in_force().safety.crisis) == Err(NotChosen::AtRisk) {
            return Err(Refused::conflict(Detail::key(NotChosen::AtRisk.as_str())));
        }
        if used_up.is_some() {
            return Err(Refused::conflict(Detail::key("refusals.chosen_over_limit")));
        }
        if let Some(visit) = visit {
            self.consume_quota(visit, Amount::Message).await?;
        }
        let (sender, answer) = oneshot::channel();
        let draft = ChannelMessage::Draft { companion, person: from, reply: RpcReplyPort::from(sender) };
        channel.cast(draft).map_err(|_| not_known())?;
        // The pool has a deadline for the call.
        let text = answer.await.map_err(|_| not_known())?;
        let failed = |error| Refused::unavailable(Detail::of("refusals.no_draft", json!({ "error": error })));
        text.map(|text| Drafted { text }).map_err(failed)
    }

    async fn greet(&self, room: &RoomId, greeting: Greeting) -> Result<Seq, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        self.check_writable(room)?;
        let Greeting { companion, text, anyway } = greeting;
        let known = self.context.memberships.companion(&channel_key.channel, &companion);
        let known = known.filter(|_| membership.companions.contains(&companion));
        let known = known.ok_or_else(|| Refused::not_found(self.not_in_room(&companion, room)))?;
        self.check_able(room, &membership, &companion).map_err(Refused::conflict)?;
        if !known.greetings.contains(&text) {
            return Err(invalid("text", Detail::of("refusals.no_greeting", json!({ "companion": companion }))));
        }
        // The head is read before the history, so that a message between the two reads is noticed.
        let last = self.reader().head(&channel_key).await?.last;
        let newest = HistoryQuery { after: None, before: None, limit: 1 };
        if !anyway && !self.history(room, newest).await?.messages.is_empty() {
            return Err(Refused::conflict(Detail::of("refusals.not_first", json!({ "room": self.name_of(room) }))));
        }
        // Of two concurrent greetings, the first one counts.
        let id: Arc<str> = format!("greeting:{last}").into();
        let from = Author { id: companion.as_str().into(), name: known.name, role: Role::Companion };
        let message = Message { id: Some(id.clone()), ..Message::new(from, text) };
        let event = Event::Said { message, reply_to: None, reply: None, said_at: None };
        Ok(self.accept(&channel_key, event, Some(id)).await?.seq)
    }

    async fn set_scene(&self, room: &RoomId, from: Author, text: Arc<str>) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        let message = Message { kind: Some(SCENE.into()), background: true, ..Message::new(from, text) };
        let event = Event::Said { message, reply_to: None, reply: None, said_at: None };
        Ok(self.accept(&channel_key, event, None).await?.seq)
    }

    async fn import(&self, room: &RoomId, chat: Vec<ImportedMessage>, id: &str) -> Result<Imported, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        // Of two imports at once, the second one finds the room not empty.
        let _lock = self.context.rewrite_locks.lock(&channel_key).await;
        let newest = self.history(room, HistoryQuery { after: None, before: None, limit: 1 }).await?.messages.pop();
        let prefix = format!("import/{id}/");
        if newest.is_some_and(|newest| newest.id.is_none_or(|id| !id.starts_with(&prefix))) {
            return Err(Refused::conflict(Detail::of("refusals.not_empty", json!({ "room": self.name_of(room) }))));
        }
        let (memberships, channel) = (&self.context.memberships, &channel_key.channel);
        let names = memberships.names(&channel_key.guild);
        let now = self.context.clock.now();
        let mut imported = Imported { messages: chat.len(), ..Imported::default() };
        let known = |at: &Moment| *at < now;
        let mut newest = chat.iter().find_map(|message| message.at.filter(known));
        for (number, ImportedMessage { mut from, text, is_scene, at }) in chat.into_iter().enumerate() {
            let companion = names.as_ref().and_then(|names| names.owner(&from.name)).filter(|_| from.role == Role::Bot);
            if let Some(known) = companion.and_then(|id| memberships.companion(channel, id)) {
                from = Author { id: known.id.as_str().into(), name: known.name, role: Role::Companion };
            }
            let id: Arc<str> = format!("{prefix}{number}").into();
            let kind = is_scene.then(|| SCENE.into());
            let message = Message { id: Some(id.clone()), kind, background: true, ..Message::new(from, text) };
            let at = at.filter(known);
            imported.undated += usize::from(at.is_none());
            newest = at.or(newest);
            let event = Event::Said { message, reply_to: None, reply: None, said_at: newest };
            let mut tries = 1..IMPORT_TRIES;
            loop {
                match self.accept(&channel_key, event.clone(), Some(id.clone())).await {
                    // The channel reads them more slowly than they come. If it reads none for too long, the same import continues later.
                    Err(Refused::TooMany { retry_after, .. }) if tries.next().is_some() => tokio::time::sleep(retry_after).await,
                    accepted => break accepted.map(drop)?,
                }
            }
        }
        Ok(imported)
    }

    async fn vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        let channel_key = self.external_member(room, &state.from)?;
        let channel_actor = ChannelActorKey(channel_key.channel.clone());
        let id_before = self.context.directory.find(&channel_actor).map(|channel| channel.get_id());
        if let Some(manager) = self.context.directory.find(&TurnTakingManagerKey(channel_key.channel)) {
            let state = state.clone();
            match call(|reply| manager.cast(ManagerMessage::Vote { state, reply })).await {
                Ok(result) => return result.map_err(Refused::from),
                Err(Unanswered::Late) => return Err(not_known()),
                // A manager ends with its round, and a vote that it has not read is lost with it. The channel knows about the round.
                Err(Unanswered::Gone) => {}
            }
        }
        // A watcher may know about a round before its manager has started. The channel knows about it as well.
        let Some(channel) = self.context.directory.find(&channel_actor) else {
            return Err(VoteError::NoRound.into());
        };
        if id_before.is_some_and(|id| id != channel.get_id()) {
            // The channel was restarted, and its predecessor may have recorded the vote.
            return Err(VoteError::Gone.into());
        }
        answered(call(|reply| channel.cast(ChannelMessage::Vote { state: Box::new(state), reply })).await)
    }

    async fn speak(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        let channel_key = self.external_member(room, &words.from)?;
        let Words { from, message_id, text } = words;
        let message_id = message_id.to_string();
        let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel)) else {
            // In a channel that is not running, no companion has the floor.
            return Err(VoteError::NotSelected { from, message_id }.into());
        };
        answered(call(|reply| channel.cast(ChannelMessage::Speak { from, message_id, text, reply })).await)
    }
}

impl ActorBackend {
    /// The actor of a channel, which is woken if it sleeps.
    pub(super) async fn running(&self, channel_key: &ChannelKey) -> Result<ActorRef<ChannelMessage>, Refused> {
        for _ in 0..WAKE_TRIES {
            if let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel.clone()))
                && look(&self.context, &channel_key.channel).await.is_some()
            {
                return Ok(channel);
            }
            if let Some(switchboard) = self.context.directory.find(&SwitchboardKey()) {
                let _ = switchboard.cast(SwitchboardMessage::Wake(channel_key.guild.clone(), channel_key.channel.clone()));
            }
            tokio::time::sleep(WAKE_PAUSE).await;
        }
        Err(not_known())
    }

    /// Sets the length of an uploaded voice note, and the text that shows it.
    fn measure_recording(&self, message: &mut InboundMessage) -> Result<(), Refused> {
        let (Some(length), [file]) = (&mut message.voice_note, &message.files[..]) else { return Ok(()) };
        let opened = self.context.speech.audio.recording(&file.bytes, LONGEST_RECORDED);
        *length = match opened {
            Ok(recording) => recording.length(),
            Err(RecordingRefused::TooLong) => {
                return Err(invalid(
                    "files[0].data",
                    Detail::of("refusals.recording_too_long", json!({ "most": LONGEST_RECORDED.as_secs() })),
                ));
            }
            Err(RecordingRefused::Malformed(_) | RecordingRefused::Codec(_)) => {
                return Err(invalid("files[0].data", Detail::key("refusals.not_a_recording")));
            }
        };
        message.attachments.iter_mut().for_each(|note| note.secs = Some(length.as_secs_f64().round() as u32));
        message.text = with_lines("", &message.attachments);
        Ok(())
    }

    /// Edits a message on its platform, or deletes it there if there is no text. In a channel of another platform, only statements of companions
    /// can be changed from here.
    async fn change_posted(&self, room: &RoomId, channel_key: &ChannelKey, seq: Seq, text: Option<&str>) -> Result<(), Refused> {
        let message = self.said(room, channel_key, seq).await?;
        if text.is_some() && is_redacted(&message) {
            return Err(Refused::not_found(Detail::key("refusals.message_deleted")));
        }
        if text.is_some() && message.awaits_words() {
            return Err(Refused::conflict(Detail::key("refusals.awaits_words")));
        }
        let platform = self.context.platforms.of(&channel_key.channel).filter(|_| message.from.role == Role::Companion);
        let Some(platform) = platform else { return self.check_writable(room) };
        let posted = self.reader().ids_of(channel_key, seq).await?;
        let notice = match text {
            Some(_) if !posted.is_empty() => self.notice_below(channel_key, seq).await?,
            _ => None,
        };
        let longest = platform.capabilities().longest_part;
        let longest = longest.saturating_sub(notice.as_ref().map_or(0, |notice| notice.encode_utf16().count()));
        let parts = text.map(|text| split(text, longest)).unwrap_or_default();
        if parts.len() > posted.len() && !posted.is_empty() {
            let values = json!({ "platform": self.platform(room), "needed": parts.len(), "there": posted.len() });
            return Err(invalid("text", Detail::of("refusals.too_many_parts", values)));
        }
        let change = async |id: &str, part: Option<&str>, notice: Option<&str>| {
            let changed = platform.change(&channel_key.guild, &channel_key.channel, id, part, notice).await;
            changed.map_err(|failed| match failed {
                NotSent::Later { after, detail } => Refused::Unavailable { detail: detail.into(), retry_after: after },
                NotSent::Unknown { detail, .. } => Refused::unavailable(detail),
                NotSent::Refused(why) | NotSent::Unpostable(why) => {
                    let values = json!({ "platform": self.platform(room), "why": why });
                    Refused::conflict(Detail::of("refusals.not_changed", values))
                }
            })
        };
        for (index, (id, part)) in posted.iter().zip(&parts).enumerate() {
            change(id, Some(part), notice.as_deref().filter(|_| index + 1 == parts.len())).await?;
        }
        let left_over = &posted[parts.len().min(posted.len())..];
        if text.is_some() {
            // The platform reports the deletion of a left-over part. Without this, the whole statement would be deleted with it.
            self.forget_ids(channel_key, left_over).await?;
        }
        for id in left_over {
            change(id, None, None).await?;
        }
        Ok(())
    }

    /// The notice that a statement carries on its platform, in the words of now.
    async fn notice_below(&self, channel_key: &ChannelKey, statement: Seq) -> Result<Option<String>, Refused> {
        let carried = self.reader().notice(channel_key, statement).await?.filter(|notice| notice.part.is_some());
        let settings = self.context.in_force();
        let spoken = self.context.memberships.language(&channel_key.channel);
        let language = spoken.as_deref().unwrap_or(&settings.speech.language);
        Ok(carried.map(|_| notice(&settings.safety, self.context.note_switch(channel_key).is_some(), language)))
    }

    /// Removes ids of the platform from the index of messages, so that events about them affect no message.
    async fn forget_ids(&self, channel_key: &ChannelKey, ids: &[Arc<str>]) -> Result<(), Refused> {
        let Some(no) = self.reader().channel_no(channel_key).await? else { return Ok(()) };
        let ward = channel_key.ward();
        let removed = ids.iter().map(|id| Write::Remove(key::message_id(ward, no, id))).collect();
        self.write_meta(ward, removed).await
    }

    /// The message with this number in a room.
    async fn said(&self, room: &RoomId, channel_key: &ChannelKey, seq: Seq) -> Result<Message, Refused> {
        match self.reader().event(channel_key, seq).await?.map(|recorded| recorded.event) {
            Some(Event::Said { message, .. }) => Ok(message),
            _ => {
                let values = json!({ "number": seq, "room": self.name_of(room) });
                Err(Refused::not_found(Detail::of("refusals.no_message", values)))
            }
        }
    }

    /// The number of the message with this id. Waits for a fence, because readable data may not be durable yet.
    async fn known_as(&self, channel_key: &ChannelKey, id: &str) -> Result<Option<Seq>, Refused> {
        if self.reader().message(channel_key, id).await?.is_none() {
            return Ok(None);
        }
        fence(&self.context, channel_key).await?;
        // If the message was lost after all, it is no longer there, and is accepted as new.
        self.reader().message(channel_key, id).await.map_err(Refused::from)
    }

    async fn replied_to(&self, channel_key: &ChannelKey, seq: Seq) -> Result<Replied, Refused> {
        let unknown = || invalid("reply_to", Detail::of("refusals.no_such_reply", json!({ "number": seq })));
        let from = self.reader().said(channel_key, seq).await?.ok_or_else(unknown)?.from;
        Ok(Replied { seq: Some(seq), author: from.id, role: from.role, quoted: None })
    }
}
