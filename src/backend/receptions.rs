//! Derives from the record how people received statements. Nothing is stored, so erased messages no longer count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::ActorBackend;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, CompanionId, GuildId, Seq};
use crate::domain::model_role::ModelRole;
use crate::domain::moment::Moment;
use crate::domain::reception::{LONGEST, REMEMBERED, is_evidence, receptions};
use crate::domain::text::first;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError};
use crate::journal::record::Used;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::backend::usage::{GuildReceptions, ReceptionBy};

/// Limits of the events that one request reads, newest first: in each room, and in total. Tests use a small one.
const MAX_PER_ROOM: usize = if cfg!(test) { 1_000 } else { 20_000 };
pub(super) const MAX_IN_ALL: usize = 200_000;
/// The number of events per read.
const PAGE: usize = 512;
/// The characters of a message that are kept.
const LONGEST_TEXT: usize = 200;

/// The facts about statements that usage records contain.
#[derive(Default)]
struct Spoken {
    /// The channels with a statement in the time range.
    channels: BTreeSet<ChannelId>,
    models: BTreeMap<(ChannelId, CompanionId), Models>,
}

/// The models of a companion's calls for statements, each with the time of its first call after another one's.
type Models = Vec<(Moment, Arc<str>)>;

impl Spoken {
    /// The model that wrote the statement of this moment. Its call is recorded before the statement, or together with it.
    fn model(&self, channel: &ChannelId, companion: &CompanionId, at: Moment) -> Option<Arc<str>> {
        let models = self.models.get(&(channel.clone(), companion.clone()))?;
        let later = models.partition_point(|(since, _)| *since <= at);
        models[..later].last().map(|(_, model)| model.clone())
    }
}

impl ActorBackend {
    /// The counts of a guild. `left` is the number of events that may still be read.
    pub(super) async fn receptions_in(
        &self,
        guild: &GuildId,
        from: Moment,
        now: Moment,
        left: &mut usize,
    ) -> Result<GuildReceptions, ReadError> {
        let spoken = self.spoken(guild, from, now).await?;
        // A room whose deletion can still be undone is hidden.
        let hidden: BTreeSet<_> = self.context.memberships.all_deleting().into_iter().map(|(channel, _)| channel).collect();
        let (mut counts, mut incomplete) = (BTreeMap::<_, BTreeMap<_, u64>>::new(), false);
        for channel in spoken.channels.difference(&hidden) {
            let events = match self.evidence(&ChannelKey::new(guild, channel), from, left).await {
                Ok((events, is_complete)) => {
                    incomplete |= !is_complete;
                    events
                }
                // A damaged room must not hide the others.
                Err(error) if error.is_damage() => {
                    incomplete = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            for one in receptions(&events, now).into_iter().filter(|one| one.at >= from) {
                let model = spoken.model(channel, &one.companion, one.at);
                let day: Arc<str> = rfc3339(one.at)[..10].into();
                let of_day = counts.entry((day, one.companion, one.trigger, model)).or_default();
                *of_day.entry(one.reception).or_default() += 1;
            }
        }
        let by = counts.into_iter().map(|((day, companion, trigger, model), received)| ReceptionBy {
            day,
            companion,
            trigger,
            model,
            received,
        });
        Ok(GuildReceptions { guild: guild.clone(), by: by.collect(), incomplete })
    }

    async fn spoken(&self, guild: &GuildId, from: Moment, now: Moment) -> Result<Spoken, ReadError> {
        let mut spoken = Spoken::default();
        // A model's call may precede its statement.
        self.reader()
            .usage(guild, from - LONGEST, Some(now + LONGEST), |record| {
                match record.used {
                    Used::Statement { .. } if record.at >= from => drop(spoken.channels.insert(record.channel)),
                    Used::Call { companion: Some(companion), model, role, .. } if *role == *ModelRole::Main.as_str() => {
                        let models = spoken.models.entry((record.channel, companion)).or_default();
                        if models.last().is_none_or(|(_, last)| *last != model) {
                            models.push((record.at, model));
                        }
                    }
                    _ => {}
                }
                ControlFlow::Continue(())
            })
            .await?;
        Ok(spoken)
    }

    /// The events of a channel since a moment that show how statements were received, with the messages before them on which their watches depend,
    /// and whether these are all.
    async fn evidence(
        &self,
        channel_key: &ChannelKey,
        from: Moment,
        left: &mut usize,
    ) -> Result<(Vec<Recorded>, bool), ReadError> {
        let (mut events, mut before) = (Vec::new(), None);
        let (mut in_room, mut earlier) = (MAX_PER_ROOM, 0);
        let is_complete = loop {
            let limit = PAGE.min(in_room).min(*left);
            if limit == 0 {
                break false;
            }
            let page = self.reader().legible(channel_key, Range { after: Seq::NONE, before, limit, newest_first: true }).await?;
            let read = page.looked_at();
            (in_room, *left, before) = (in_room - read, *left - read, page.last);
            let is_earlier = |event: &&Recorded| event.at < from && matches!(event.event, Event::Said { .. });
            earlier += page.events.iter().filter(is_earlier).count();
            events.extend(page.events.into_iter().filter(|recorded| is_evidence(&recorded.event)).map(shortened));
            if read < limit || earlier >= REMEMBERED {
                break true;
            }
        };
        events.reverse();
        Ok((events, is_complete))
    }
}

/// An event with the beginning of its text, which shows whether it has words. Many events are held at once.
fn shortened(mut recorded: Recorded) -> Recorded {
    if let Event::Said { message, .. } = &mut recorded.event
        && message.text.len() > LONGEST_TEXT
    {
        message.text = first(&message.text, LONGEST_TEXT).into();
    }
    recorded
}
