//! Checks budgets against the record: questions, statements, tokens and addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::ends::{End, Watched};
use super::super::life::Props;
use super::super::stage::lock;
use super::super::store::Committed;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Event};
use crate::domain::id::{CompanionId, GuildId, Seq, Ticket};
use crate::domain::message::Address;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
/// The longest time between journaling and handling, without disturbances.
const A_WHILE: Duration = Duration::from_secs(5);

/// Dropped replies. Their statements do not count, because a part in flight may be posted while another companion already speaks.
#[derive(Default)]
struct Dropped {
    owed: BTreeMap<ChannelKey, BTreeMap<Ticket, (CompanionId, Vec<Seq>)>>,
    gone: BTreeMap<ChannelKey, BTreeSet<Seq>>,
    tickets: BTreeSet<(ChannelKey, Ticket)>,
}

impl Dropped {
    fn follow(&mut self, channel_key: &ChannelKey, event: &Event) {
        let owed = self.owed.entry(channel_key.clone()).or_default();
        match event {
            Event::ReplyOwed { ticket, companion, messages, .. } | Event::Replanned { next: ticket, companion, messages, .. } => {
                drop(owed.insert(*ticket, (companion.clone(), messages.clone())));
            }
            Event::Deleted { messages, .. } => self.gone.entry(channel_key.clone()).or_default().extend(messages),
            _ => {}
        }
        let gone = self.gone.get(channel_key);
        let is_dropped = |companion: &CompanionId, messages: &[Seq]| match event {
            Event::Cleared { .. } => true,
            Event::Left { companion: left } => left == companion,
            _ => gone.is_some_and(|gone| messages.iter().all(|seq| gone.contains(seq))),
        };
        let dropped = owed.extract_if(.., |_, (companion, messages)| is_dropped(companion, messages));
        self.tickets.extend(dropped.map(|(ticket, _)| (channel_key.clone(), ticket)));
    }
}

/// Checks that no budget is exceeded. Does nothing if the clock is set in this run, because the record does not show spans of time then.
pub(super) fn check(props: &Props) {
    let stage = &props.stage;
    if stage.plan.weather.has_jumps {
        return;
    }
    let rules = &stage.plan.rules;
    let (mut by_gate, mut by_guild) =
        (BTreeMap::<(ChannelKey, CompanionId), Vec<Moment>>::new(), BTreeMap::<_, Vec<Moment>>::new());
    let (mut statements, mut dropped) = (BTreeMap::<_, u32>::new(), Dropped::default());
    let (mut granted, mut restarted, ends) = (BTreeMap::new(), BTreeMap::<_, u32>::new(), props.store.ends.all());
    for entry @ Committed { channel_key, recorded, .. } in lock(&props.store.committed).iter() {
        dropped.follow(channel_key, &recorded.event);
        match &recorded.event {
            Event::Decided(Decided { decision: Decision::Yes, companions, .. }) => {
                granted.extend(
                    companions.iter().map(|companion| ((channel_key.clone(), companion.clone()), (entry.life, entry.at))),
                );
            }
            // Until a restarted channel has read its journal, the guild's budget does not include a statement that was granted but is not owed yet.
            Event::ReplyOwed { companion, .. } => {
                let is_restart = |(life, at)| {
                    let is_end = |end: &End| end.who == Watched::Channel(channel_key.channel.clone());
                    life != entry.life || ends.iter().any(|end| is_end(end) && (at..=entry.at).contains(&end.at))
                };
                let was_granted = granted.get(&(channel_key.clone(), companion.clone())).copied();
                *restarted.entry(channel_key.guild.clone()).or_default() += u32::from(was_granted.is_some_and(is_restart));
            }
            _ => {}
        }
        match &recorded.event {
            Event::Evaluated(evaluated) if evaluated.trigger != Trigger::DirectAddress => {
                by_gate.entry((channel_key.clone(), evaluated.companion.clone())).or_default().push(recorded.at);
                by_guild.entry(channel_key.guild.clone()).or_default().push(recorded.at);
            }
            Event::Said { reply: Some(ticket), .. } if !dropped.tickets.contains(&(channel_key.clone(), *ticket)) => {
                *statements.entry(channel_key.guild.clone()).or_default() += 1
            }
            _ => {}
        }
    }
    for ((channel_key, companion), times) in by_gate {
        let most = most_within(times, HOUR);
        if most > rules.evaluations_per_hour {
            stage.violate(format!("{channel_key}: {companion} was asked {most} times within an hour"));
        }
    }
    for (guild, times) in by_guild {
        let most = most_within(times, HOUR);
        if most > rules.guild_evaluations_per_hour {
            stage.violate(format!("guild {guild}: {most} questions within an hour"));
        }
    }
    for (guild, statements_made) in statements {
        if statements_made > rules.guild_statements_per_day + restarted.get(&guild).copied().unwrap_or_default() {
            stage.violate(format!("guild {guild}: {statements_made} statements in a day"));
        }
    }
    tokens(props);
    addresses(props);
}

/// Checks that no companion is asked in a guild after its decisions on record have used up the tokens.
fn tokens(props: &Props) {
    let Some(most) = props.stage.plan.rules.tokens_per_day else { return };
    // When the tokens were used up, by guild.
    let (mut used, mut since) = (BTreeMap::<GuildId, u64>::new(), BTreeMap::<GuildId, Moment>::new());
    for Committed { channel_key, recorded, .. } in lock(&props.store.committed).iter() {
        match &recorded.event {
            Event::Decided(Decided { call: Some(call), .. }) => {
                let used = used.entry(channel_key.guild.clone()).or_default();
                *used += call.input_tokens + call.output_tokens;
                if *used >= most {
                    since.entry(channel_key.guild.clone()).or_insert(recorded.at);
                }
            }
            Event::Evaluated(evaluated)
                if since.get(&channel_key.guild).is_some_and(|since| recorded.at.since(*since) > A_WHILE) =>
            {
                props.stage.violate(format!(
                    "{channel_key}: {} is asked although {most} tokens are used up: {recorded:?}",
                    evaluated.companion
                ));
            }
            Event::Decided(decided) if decided.reason == Reason::Budget => props.stage.reach("no tokens left"),
            _ => {}
        }
    }
}

/// Checks that no person is granted more addresses per minute than the limit, and that none is refused below the limit. A sleeping room must wake
/// before it counts an address, so a later one in another room may be counted earlier. An address that arrives late counts from the time it was sent
/// if it wakes a room, and from its arrival if a companion is awake.
fn addresses(props: &Props) {
    let stage = &props.stage;
    let most = stage.plan.rules.addresses_per_minute;
    let is_disturbed = stage.life() > 1 || !stage.notes().killed.is_empty() || stage.plan.weather.poison > 0.0;
    let committed = lock(&props.store.committed);
    // With the time of the refusal.
    let refused: BTreeMap<_, _> = committed
        .iter()
        .filter_map(|entry| match entry.recorded.event {
            Event::AddressRefused { message } => Some(((&entry.channel_key, message), entry.recorded.at)),
            _ => None,
        })
        .collect();
    // When a companion was asked, by message.
    let mut asked = BTreeMap::<_, Vec<Moment>>::new();
    for entry in committed.iter() {
        if let Event::Evaluated(evaluated) = &entry.recorded.event
            && evaluated.trigger == Trigger::DirectAddress
        {
            asked.entry((&entry.channel_key, evaluated.message)).or_default().push(entry.recorded.at);
        }
    }
    let mut by_person = BTreeMap::<_, Vec<Addressed>>::new();
    for Committed { channel_key, recorded, .. } in committed.iter() {
        if let Event::Said { message, reply: None, said_at, .. } = &recorded.event
            && message.address != Address::default()
        {
            let key = (channel_key, recorded.seq);
            let times = by_person.entry((channel_key.guild.clone(), message.from.id.clone())).or_default();
            let asked_at = asked.get(&key).map_or(&[][..], Vec::as_slice);
            let is_asked_at_once = asked_at.contains(&recorded.at);
            let is_granted = is_asked_at_once || (!asked_at.is_empty() && said_at.is_none());
            let said_at = said_at.unwrap_or(recorded.at).min(recorded.at);
            let counts_from = asked_at.iter().copied().max().unwrap_or(recorded.at).max(recorded.at);
            let refused_at = refused.get(&key).copied();
            times.push(Addressed { said_at, recorded_at: recorded.at, counts_from, refused_at, is_granted });
        }
    }
    for ((guild, person), times) in by_person {
        for address in &times {
            let Some(refused_at) = address.refused_at else { continue };
            stage.reach("address refused");
            let others = times.iter().filter(|other| other.counts_against(address.said_at, refused_at));
            let within = 1 + others.count() as u32;
            if within <= stage.plan.rules.least_addresses_per_minute {
                stage.violate(format!("guild {guild}: an address by {person} is refused, the {within}th within a minute"));
            }
        }
        let granted = times.iter().filter(|address| address.is_granted && address.refused_at.is_none());
        let most_granted = most_within(granted.map(|address| address.recorded_at).collect(), MINUTE - A_WHILE);
        if most_granted > most && !is_disturbed {
            stage.violate(format!("guild {guild}: {most_granted} addresses by {person} within a minute"));
        }
    }
}

struct Addressed {
    said_at: Moment,
    recorded_at: Moment,
    /// The latest time from which the address counts: that of the newest question that it led to, or else of its record.
    counts_from: Moment,
    refused_at: Option<Moment>,
    is_granted: bool,
}

impl Addressed {
    /// Whether this address may count against one that was sent and refused at these times. An address that was refused by then does not count. One
    /// that is refused later may: a companion that wakes counts it from the time it was sent.
    fn counts_against(&self, said_at: Moment, refused_at: Moment) -> bool {
        self.refused_at.is_none_or(|at| at > refused_at)
            && said_at.since(self.counts_from) < MINUTE + A_WHILE
            && self.said_at.since(refused_at) < A_WHILE
    }
}

fn most_within(mut times: Vec<Moment>, span: Duration) -> u32 {
    times.sort();
    let within = |end: usize| times[..=end].iter().filter(|at| times[end].since(**at) < span).count();
    (0..times.len()).map(within).max().unwrap_or_default() as u32
}
