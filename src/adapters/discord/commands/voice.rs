//! `/tertulia voice`: brings companions into the call of a voice channel, sends them out, and shows its status.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::interaction::ChannelContext;
use super::members::{may_change, no_companion};
use super::quoting::{self, name};
use super::text::{Text, say};
use super::words::{self, channel, elsewhere, enumerated, listed};
use super::{Answer, CommandHandler};
use crate::calls::{Calls, Silence, Status};
use crate::permissions::{self, Need};
use crate::ports::backend::Refused;
use crate::ports::backend::room::Room;
use crate::ports::call_room::{Description, SpeechService, Trouble};
use crate::rest::{Failed, Request};
use crate::snowflake::Snowflake;
use crate::wire::{Server, ServerChannel, ServerMember};

/// How long an answer waits until the bot is in the call. If Discord refuses the bot, it sends no reply.
const SETTLED_WITHIN: Duration = Duration::from_secs(15);

/// The call of a guild, as an answer shows it.
struct CallStatus {
    call: Status,
    room: Option<Room>,
    speech: Description,
    /// The names of the people that companions listen to, marked if muted.
    heard: Vec<Text>,
    /// The number of people who opted out.
    ignored: usize,
    is_stage: bool,
}

impl CommandHandler {
    pub(super) async fn voice_join(
        &self,
        to: Option<ChannelContext>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<Text, Answer> {
        let (calls, guild) = self.calls(here)?;
        let at = match to {
            Some(at) => at,
            None => match calls.channel_of(guild, person) {
                Some(theirs) => self.look_at(theirs, guild, here, person).await?,
                None if here.is_voice() => here.clone(),
                None => {
                    return Err(Answer::Refused(say!(
                        "Enter a voice channel first, or name one: `/tertulia voice join where:…`"
                    )));
                }
            },
        };
        if !at.is_voice() {
            return Err(Answer::Refused(say!(
                "{channel} has no call: choose a voice channel.",
                channel = channel(at.channel.get())
            )));
        }
        may_change(&at, here)?;
        if calls.status(guild).is_some_and(|call| call.channel == at.channel && call.is_connected && call.is_asked_for) {
            return Ok(say!("The companions are in the call of {channel} already.", channel = channel(at.channel.get())));
        }
        if let Some(need) = at.missing_in_call() {
            return Err(Answer::Refused(Text::lines(words::needs([&need]))));
        }
        calls.join(guild, at.channel).await.map_err(|refused| refusal(refused, &at, here))?;
        tracing::info!(%guild, channel = %at.channel, by = %person, "companions were brought into a call");
        let call = calls.settled(guild, at.channel, SETTLED_WITHIN).await;
        let room = self.room_of(&at, at.channel).await?;
        Ok(joined(&at, room.as_ref(), call.as_ref()))
    }

    pub(super) async fn voice_leave(&self, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let (calls, guild) = self.calls(here)?;
        let Some(call) = calls.status(guild) else {
            return Ok(say!("The companions are in no call of this server."));
        };
        may_change(&self.look_at(call.channel, guild, here, person).await?, here)?;
        calls.leave(guild).await;
        tracing::info!(%guild, channel = %call.channel, by = %person, "companions were sent out of a call");
        Ok(say!(
            "The companions have left the call of {channel}. They come back when they are asked (`/tertulia voice join`), or once everybody else has left it.",
            channel = channel(call.channel.get())
        ))
    }

    pub(super) async fn voice_status(&self, here: &ChannelContext, person: Snowflake) -> Result<Text, Answer> {
        let (calls, guild) = self.calls(here)?;
        let Some(call) = calls.status(guild) else {
            return Ok(say!("The companions are in no call of this server. `/tertulia voice join` brings them into one."));
        };
        let at = self.look_at(call.channel, guild, here, person).await?;
        if !at.user_may_see() {
            return Ok(say!("The companions are in the call of a voice channel that you do not see."));
        }
        let room = self.room_of(&at, at.channel).await?;
        let speech = calls.speech(call.channel);
        let guild_id = at.guild_id();
        let is_ignored = |user: Snowflake| self.opt_outs.is_ignored(&guild_id, &user.person());
        let (ignored, heard): (Vec<_>, Vec<_>) = call.people.iter().partition(|(user, _)| is_ignored(*user));
        let heard = heard.into_iter().map(|(_, present)| match (present.is_muted, quoting::verbatim(&present.name)) {
            (true, name) => say!("{name} (muted)", name = name),
            (false, name) => name.into(),
        });
        let (heard, ignored) = (heard.collect(), ignored.len());
        Ok(describe(&CallStatus { is_stage: at.is_stage(), call, room, speech, heard, ignored }))
    }

    /// The calls and the guild. Refused if there are no calls, or in a direct message.
    fn calls(&self, here: &ChannelContext) -> Result<(&Calls, Snowflake), Answer> {
        let calls = self.calls.as_ref().ok_or_else(|| Answer::Refused(say!("This bot takes part in no calls.")))?;
        let guild = here.guild.ok_or_else(|| Answer::Refused(say!("Only servers have voice channels.")))?;
        Ok((calls, guild))
    }

    /// Looks up a channel with the permissions in it. Discord sends them for the channel in which the command is used; for
    /// others, they are requested.
    async fn look_at(
        &self,
        channel: Snowflake,
        guild: Snowflake,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<ChannelContext, Answer> {
        if channel == here.channel {
            return Ok(here.clone());
        }
        self.look_at_all(&[channel], guild, person).await?.pop().ok_or_else(unseen)
    }

    /// Requests the permissions in channels. Channels that the bot does not see, and threads, are left out.
    pub(super) async fn look_at_all(
        &self,
        channels: &[Snowflake],
        guild: Snowflake,
        person: Snowflake,
    ) -> Result<Vec<ChannelContext>, Answer> {
        let bot = self.discord.bot().await.map_err(unanswered)?.user;
        let rest = self.discord.rest();
        // The list includes channels that the bot may not enter.
        let listed: Vec<ServerChannel> = rest.ask(Request::guild_channels(guild)).await.map_err(unanswered)?;
        let server: Server = rest.ask(Request::guild(guild)).await.map_err(unanswered)?;
        let member = async |id| rest.ask::<ServerMember>(Request::member(guild, id)).await.map_err(unanswered);
        let (user, own) = (member(person).await?, member(bot).await?);
        let context = |channel: &Snowflake| {
            let listed = listed.iter().find(|listed| listed.id == *channel)?;
            let permissions = |id, member| permissions::in_channel(&server, id, member, listed, self.discord.now());
            Some(ChannelContext {
                channel: *channel,
                guild: Some(guild),
                kind: Some(listed.kind),
                parent: None,
                is_locked: false,
                user_permissions: permissions(person, &user),
                bot_permissions: Some(permissions(bot, &own)),
            })
        };
        Ok(channels.iter().filter_map(context).collect())
    }
}

/// The refusal for a channel that the bot does not see.
pub(super) fn unseen() -> Answer {
    Answer::Refused(Text::lines(words::needs([&Need::Listen])))
}

pub(super) fn unanswered(failed: Failed) -> Answer {
    tracing::warn!(error = %failed, "the permissions in a channel could not be requested");
    Answer::Failed(say!("Discord does not tell the permissions in that channel at the moment. Please try again in a minute."))
}

fn refusal(refused: Refused, at: &ChannelContext, here: &ChannelContext) -> Answer {
    match refused {
        Refused::NotFound(_) => Answer::Refused(match elsewhere(at, here) {
            None => no_companion(at, here),
            Some(channel) => {
                say!("No companion is in {channel} yet. Add one first: `/tertulia join where:` {channel}", channel = channel)
            }
        }),
        Refused::TooMany { .. } => Answer::Refused(say!(
            "As many calls are going on as this bot takes part in. Please try again later; the operator of the bot can raise the limit."
        )),
        refused => refused.into(),
    }
}

fn joined(at: &ChannelContext, room: Option<&Room>, call: Option<&Status>) -> Text {
    let place = channel(at.channel.get());
    let names = listed(room.iter().flat_map(|room| &room.companions).map(|companion| &companion.name));
    let Some(call) = call else { return say!("The companions were sent out of the call of {channel} again.", channel = place) };
    if !call.is_connected {
        let why = call.trouble.as_deref().map(|trouble| Text::Plain(quoting::verbatim(trouble)).bullet());
        let waits =
            say!("The bot is not in the call of {channel} yet, and tries again until `/tertulia voice leave`.", channel = place);
        let full = say!(
            "If the channel is full: Edit Channel > Overview > User Limit, or give the bot the permission **Move Members** there."
        );
        return Text::lines([waits].into_iter().chain(why).chain([full.bullet()]));
    }
    let there = say!(
        "In the call of {channel} now: {names}. `/tertulia voice status` tells who is heard.",
        channel = place,
        names = names
    );
    Text::lines([there].into_iter().chain(silence(call.silence, at.is_stage())))
}

/// Explains why the bot cannot be heard or cannot hear, and what to do.
fn silence(silence: Silence, is_stage: bool) -> Vec<Text> {
    let Silence { is_suppressed, is_muted, is_deafened } = silence;
    let suppressed = || {
        match is_stage {
        true => say!(
            "The bot is in the audience of the stage: companions hear, and answer in writing. It has asked to speak. *What to do:* open its menu on the stage > Invite to Speak."
        )
        .bullet(),
        false => Text::lines(words::needs([&Need::Speak])),
    }
    };
    let muted = || {
        say!(
            "A moderator has muted the bot: companions hear, and answer in writing. *What to do:* open its menu in the voice channel > uncheck Server Mute."
        )
        .bullet()
    };
    let deafened = || {
        say!(
            "A moderator has deafened the bot: companions hear nobody, and answer in writing. *What to do:* open its menu in the voice channel > uncheck Server Deafen."
        )
        .bullet()
    };
    [is_suppressed.then(suppressed), is_muted.then(muted), is_deafened.then(deafened)].into_iter().flatten().collect()
}

fn describe(status: &CallStatus) -> Text {
    let CallStatus { call, room, speech, heard, ignored, is_stage } = status;
    let place = channel(call.channel.get());
    let mut lines = vec![match (call.is_connected, call.lasted) {
        (true, Some(lasted)) if call.is_end_to_end => {
            say!("**In the call of {channel}** for {time}, encrypted end to end.", channel = place, time = duration(lasted))
        }
        (true, Some(lasted)) => {
            say!("**In the call of {channel}** for {time}, not encrypted end to end.", channel = place, time = duration(lasted))
        }
        _ => say!("**On the way into the call of {channel}.**", channel = place),
    }];
    if let Some(trouble) = &call.trouble {
        let text = say!("It does not work yet, and is tried again: {problem}", problem = quoting::verbatim(trouble));
        lines.push(text.bullet());
    }
    if call.is_downgraded {
        let text = say!(
            "Discord has downgraded the call: it was encrypted end to end, and is not any more. An app that cannot encrypt may be in it."
        );
        lines.push(text.bullet());
    }
    lines.extend(silence(call.silence, *is_stage));
    let opted_out = match *ignored {
        0 => None,
        1 => Some(say!("One more is there, and is not listened to.")),
        more => Some(say!("{count} more are there, and are not listened to.", count = more)),
    };
    lines.push(Text::sentences([say!("Heard: {names}.", names = enumerated(heard.clone()))].into_iter().chain(opted_out)));
    let companions = room.iter().flat_map(|room| &room.companions);
    lines.push(say!("Companions: {names}.", names = listed(companions.map(|companion| &companion.name))));
    let Description { recognition, recognises_words, synthesis, troubles, .. } = speech;
    let has = |trouble| troubles.contains(&trouble);
    let ears = services(recognition);
    lines.push(match recognises_words {
        _ if has(Trouble::RecognitionFailed) => say!(
            "Ears: {services}; **they fail now**, and no words are recognised; the log of the bot tells why.",
            services = ears
        ),
        _ if has(Trouble::RecognitionUsedUp) => {
            say!("Ears: {services}; what this server may have recognised is used up for today.", services = ears)
        }
        true => say!("Ears: {services}; words are recognised.", services = ears),
        false => say!("Ears: {services}; that somebody speaks is noticed, but no words are.", services = ears),
    });
    let voices = services(synthesis);
    lines.push(match () {
        () if has(Trouble::SynthesisFailed) => say!(
            "Voices: {services}; **they fail now**, and what cannot be spoken is written; the log of the bot tells why.",
            services = voices
        ),
        () if has(Trouble::SynthesisUsedUp) => {
            say!("Voices: {services}; what this server may have spoken is used up for today.", services = voices)
        }
        () => say!("Voices: {services}.", services = voices),
    });
    let (packets, lost) = (call.counts.packets(), call.counts.lost());
    if packets > 0 {
        let share = lost as f64 * 100.0 / (packets + lost) as f64;
        lines.push(say!(
            "Packets: {received} received, {lost} lost ({share} %).",
            received = packets,
            lost = lost,
            share = format!("{share:.1}")
        ));
    }
    if !call.is_asked_for {
        lines.push(say!("The settings of the bot bring it into this call when somebody is in it."));
    }
    Text::lines(lines)
}

/// Lists the services in their order. Later recognition services are fallbacks.
fn services(services: &[SpeechService]) -> Text {
    let each = services.iter().map(|service| match &service.host {
        Some(host) => {
            say!("{service} at {host}", service = name(service.provider), host = quoting::verbatim(host))
        }
        None => say!("{service} on the machine of the bot", service = name(service.provider)),
    });
    Text::Joined(each.collect(), ", ")
}

fn duration(lasted: Duration) -> Text {
    match lasted.as_secs() / 60 {
        0 => say!("less than a minute"),
        minutes @ 1..60 => say!("{minutes} min", minutes = minutes),
        minutes => say!("{hours} h {minutes} min", hours = minutes / 60, minutes = minutes % 60),
    }
}
