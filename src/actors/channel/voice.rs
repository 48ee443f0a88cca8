//! The voice call of a channel: journals the hand-overs of the conversation, and carries out its effects in the call.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::channel_context::ChannelContext;
use crate::actors::erasure::deletion::delete_messages;
use crate::actors::inbound::Inbound;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::writer::{HandOver, Request};
use crate::domain::conversation::{Aloud, Conversation, Notice};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq};
use crate::domain::voice::interruption;
use crate::domain::voice::utterance;
use crate::journal::reader::Reader;
use crate::ports::voice_call::CallEffect;
use crate::telemetry::plain::Plain;

/// The number of attempts of an operation in the store. They take a minute. After that only a restart tries again.
const MAX_ATTEMPTS: u32 = 6;
/// The pause after the first attempt. Each further pause is twice as long as the previous one.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct VoiceEffects {
    /// The effects of a spoken reply that wait for the next commit.
    after_commit: Vec<CallEffect>,
}

impl VoiceEffects {
    /// Carries out an effect of the conversation in the call. Effects that start playback wait until their event is committed.
    pub(super) fn carry_out(&mut self, effect: CallEffect, channel: &ChannelContext) {
        let is_heard =
            matches!(effect, CallEffect::Reply { aloud: Aloud::Start { .. } | Aloud::Play(interruption::Effect::Speak), .. });
        if is_heard {
            self.after_commit.push(effect);
        } else {
            carry_out(effect, channel);
        }
    }

    /// Whether any effect waits for the next commit.
    pub(super) fn waits_for_commit(&self) -> bool {
        !self.after_commit.is_empty()
    }

    /// Takes the effects that wait for the next commit.
    pub(super) fn take_after_commit(&mut self) -> Vec<CallEffect> {
        std::mem::take(&mut self.after_commit)
    }
}

/// Starts the playback of a reply after the commit of its event. Has no effect if the reply has ended in the meantime. If it is paused, playback
/// starts when it is resumed.
pub(super) fn play_on_record(effect: CallEffect, conversation: &Conversation, channel: &ChannelContext) {
    let is_wanted = match &effect {
        CallEffect::Reply { ticket, aloud: Aloud::Play(_), .. } => conversation.voice().plays_aloud(*ticket),
        CallEffect::Reply { ticket, .. } => conversation.voice().spoken_reply() == Some(*ticket),
        CallEffect::Finalize { .. } | CallEffect::CountsAsNoise { .. } | CallEffect::Restarted { .. } => true,
    };
    if is_wanted {
        carry_out(effect, channel);
    }
}

/// Ends the playback of a predecessor after the channel is restored, even if its reply is not owed any more.
pub(super) fn end_playback_of_predecessor(conversation: &Conversation, channel: &ChannelContext) {
    let people = conversation.voice().people_in_call().cloned().collect();
    carry_out(CallEffect::Restarted { people }, channel);
}

/// Makes the call stop its playback. If a reply is in progress, the effects for it are sent again afterwards.
pub(super) fn end_playback(channel: &ChannelContext) {
    carry_out(CallEffect::Restarted { people: Vec::new() }, channel);
}

fn carry_out(effect: CallEffect, channel: &ChannelContext) {
    channel.context.voice_calls.carry_out(&channel.key.channel, effect);
}

/// Sends the messages of a hand-over to the writer. They return to the channel as one message.
pub(super) fn journal_hand_over(messages: Vec<Event>, conversation: &Conversation, channel: &ChannelContext) {
    channel.send_to_writer(Request::HandOver(HandOver {
        channel_key: channel.key.clone(),
        at: None,
        handled: conversation.handled(),
        messages,
        reply: channel.reply(|result| result.err().map(ChannelMessage::NotHandedOver)),
    }));
}

/// Whether a notice concerns the conversation. An opt-out concerns it only if the person is in the call or has buffered segments.
pub(super) fn is_relevant(notice: &Notice, conversation: &Conversation) -> bool {
    match notice {
        Notice::Call(utterance::Input::OptedOut { user }) => conversation.voice().speakers().contains(user),
        _ => true,
    }
}

/// The people in the call who have opted out. The opt-out may be older than this channel, or than their speech.
pub(super) fn opted_out(conversation: &Conversation, channel: &ChannelContext) -> Vec<PersonId> {
    let (guild, opt_outs) = (&channel.key.guild, &channel.context.opt_outs);
    conversation.voice().speakers().into_iter().filter(|user| opt_outs.holds(guild, user)).collect()
}

/// Journals that a person whose socket was lost has left.
pub(super) fn record_left(user: &PersonId, conversation: &Conversation, channel: &ChannelContext) {
    let Some(joined) = conversation.voice().joined_call_at(user) else { return };
    let (context, channel_key) = (channel.context.clone(), channel.key.clone());
    let (actor, user, attempts) = (channel.actor.clone(), user.clone(), AtomicU32::new(0));
    insist("the end of a person's call could not be journaled", channel, move || {
        let (context, channel_key, actor, user) = (context.clone(), channel_key.clone(), actor.clone(), user.clone());
        let is_first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            // The event may have been journaled despite the error, and the person may have returned.
            if !is_first {
                let (sender, answer) = oneshot::channel();
                actor.cast(ChannelMessage::Inspect(RpcReplyPort::from(sender))).map_err(|error| error.to_string())?;
                let look = answer.await.map_err(|error| error.to_string())?;
                if look.conversation.voice().joined_call_at(&user) != Some(joined) {
                    return Ok(());
                }
            }
            let event = Reader::new(&*context.store).event(&channel_key, joined).await.map_err(|error| error.to_string())?;
            let Some(Recorded { event: Event::VoiceJoined { from }, .. }) = event else { return Ok(()) };
            // A person who was forgotten in the meantime counts as having left.
            if from.id.is_empty() {
                return Ok(());
            }
            let left = Inbound::new((*context).clone()).accept(&channel_key, Event::VoiceLeft { from }, None).await;
            left.map(drop).map_err(|error| error.to_string())
        }
    });
}

/// Deletes a person's speech that was not handed over.
pub(super) fn redact_speech(user: &PersonId, conversation: &Conversation, channel: &ChannelContext) {
    let segments: BTreeSet<Seq> = conversation.voice().buffered_segments_of(user).into_iter().collect();
    if !segments.is_empty() {
        delete_ignored(segments, channel);
    }
}

/// Deletes what a person said who has opted out.
pub(super) fn delete_ignored(said: BTreeSet<Seq>, channel: &ChannelContext) {
    let (context, channel_key) = (channel.context.clone(), channel.key.clone());
    insist(
        "what a person said who wants to be ignored could not be deleted; a restart of the channel tries again",
        channel,
        move || {
            let (context, channel_key, said) = (context.clone(), channel_key.clone(), said.clone());
            async move { delete_messages(&context, &channel_key, &said).await.map_err(|error| error.to_string()) }
        },
    );
}

/// Repeats an attempt in a task of its own until it succeeds or the attempts are used up. The attempts wait for this channel, so the channel must not
/// wait for them.
fn insist<F, T>(failure: &'static str, channel: &ChannelContext, attempt: F)
where
    F: Fn() -> T + Send + 'static,
    T: Future<Output = Result<(), String>> + Send,
{
    let channel = channel.key.channel.clone();
    tokio::spawn(async move {
        let mut pause = PAUSE;
        for number in 1..=MAX_ATTEMPTS {
            match attempt().await {
                Ok(()) => return,
                Err(error) if number == MAX_ATTEMPTS => {
                    tracing::error!(channel = %Plain(channel.as_str()), error, "{failure}");
                }
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::channel_context;
    use super::*;
    use crate::domain::id::Ticket;

    #[tokio::test]
    async fn what_makes_a_reply_heard_waits_until_it_is_on_record() {
        let (channel, _received) = channel_context().await;
        let mut voice = VoiceEffects::default();
        let say = Aloud::Say { sentence: 0, text: "Hello.".into() };

        for aloud in [say, Aloud::SaidAll, Aloud::Start { sentence: 0 }, Aloud::Play(interruption::Effect::Speak)] {
            voice.carry_out(CallEffect::Reply { ticket: Ticket(1), turn: None, aloud }, &channel);
        }

        assert!(voice.waits_for_commit());
        let waiting = voice.take_after_commit();
        let is_heard = |effect: &CallEffect| {
            matches!(effect, CallEffect::Reply { aloud: Aloud::Start { .. } | Aloud::Play(interruption::Effect::Speak), .. })
        };
        assert!(waiting.len() == 2 && waiting.iter().all(is_heard), "{waiting:?}");
        assert!(!voice.waits_for_commit());
    }
}
