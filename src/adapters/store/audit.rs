//! Reads a store or a backup completely and checks it: journals have no gaps that no deletion explains, heads match, and counts match. With an
//! [`Inspect`], it also checks that each record can be decoded.

use std::collections::BTreeMap;
use std::fmt;

use super::batch::number;
use super::manifest::{Counts, FORMAT};
use super::open_error::WAYS_OUT;
use super::sled::facts::{counts_from, counts_key, format_from, identity_key};
use crate::domain::id::{Seq, Ward};
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::maintenance::{Fault, Inspect};
use crate::ports::store::{StoreError, Value};

/// Progress is reported after this many records.
pub(super) const PROGRESS_EVERY: u64 = 4096;

// The limit keeps the report readable. The number of problems is always exact.
const PROBLEMS_KEPT: usize = 100;

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub records: u64,
    /// The number of bytes of keys and values.
    pub bytes: u64,
    /// The number of events in journals.
    pub events: u64,
    /// The number of channels with a journal.
    pub channels: u64,
    /// The counts that the store recorded: everything ever committed.
    pub counts: Counts,
    pub problem_count: u64,
    /// The number of problems that are complete records which cannot be decoded.
    pub illegible: u64,
    /// The first hundred problems.
    pub problems: Vec<Problem>,
}

impl Report {
    /// The number of unreadable places among the stored problems.
    pub(super) fn holes(&self) -> usize {
        self.problems.iter().filter(|problem| matches!(problem, Problem::Unreadable(_))).count()
    }

    /// Whether no problem was found.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }
}

/// A range of keys that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The last readable key before it; none: it is at the beginning.
    pub after: Option<Key>,
    /// The first readable key after it; none: it extends to the end.
    pub before: Option<Key>,
    /// The error of sled.
    pub detail: String,
    /// The names of the channels of these two keys, if known.
    pub channel_names: [Option<Box<str>>; 2],
}

impl Hole {
    /// Sets the channel names that are known in a ward.
    fn name(&mut self, ward: Ward, channels: &BTreeMap<ChannelNo, Channel>) {
        for (key, channel_name) in [&self.after, &self.before].into_iter().zip(&mut self.channel_names) {
            if let Some((_, channel, _)) = key.as_ref().and_then(event_of).filter(|(key_ward, ..)| *key_ward == ward) {
                *channel_name = channels.get(&channel).and_then(|channel| channel.name.clone());
            }
        }
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, before, detail, channel_names: [after_name, before_name] } = self;
        let after = after.as_ref().map(|key| Named { key, channel_name: after_name.as_deref() });
        let before = before.as_ref().map(|key| Named { key, channel_name: before_name.as_deref() });
        match (after, before) {
            (Some(after), Some(before)) => write!(f, "the records between {after} and {before} cannot be read: {detail}"),
            (Some(after), None) => write!(f, "the records after {after} cannot be read: {detail}"),
            (None, Some(before)) => write!(f, "the records before {before} cannot be read: {detail}"),
            (None, None) => write!(f, "nothing can be read: {detail}"),
        }
    }
}

/// A record whose bytes are intact, but which cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegible {
    pub ward: Ward,
    pub fault: Fault,
    /// The name of its channel, if known.
    pub channel_name: Option<Box<str>>,
}

impl fmt::Display for Illegible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ward, fault: Fault { what, channel, detail }, channel_name } = self;
        f.write_str(what)?;
        match (channel_name, channel) {
            (Some(channel_name), _) => write!(f, " of {channel_name}")?,
            (None, Some(channel)) => write!(f, " of ward {}, channel {}", ward.0, channel.0)?,
            (None, None) => {}
        }
        write!(f, " cannot be read: {detail}")
    }
}

/// Formats a record's key for people.
struct Named<'a> {
    key: &'a Key,
    channel_name: Option<&'a str>,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match event_of(self.key) {
            Some((ward, channel, seq)) => {
                write!(f, "event {seq} of {}", ChannelLabel { ward, channel, channel_name: self.channel_name })
            }
            None => write!(f, "the record {}", self.key),
        }
    }
}

/// Formats a channel's numbers, and its name where that is known.
struct ChannelLabel<'a> {
    ward: Ward,
    channel: ChannelNo,
    channel_name: Option<&'a str>,
}

impl fmt::Display for ChannelLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ward {}, channel {}", self.ward.0, self.channel.0)?;
        self.channel_name.map_or(Ok(()), |channel_name| write!(f, " ({channel_name})"))
    }
}

/// The event that a key belongs to; none: it is not the key of an event.
fn event_of(key: &Key) -> Option<(Ward, ChannelNo, Seq)> {
    let [ward, kind, rest @ ..] = key.as_bytes() else { return None };
    let (channel, seq) = rest.split_first_chunk().filter(|_| *kind == Kind::Journal as u8)?;
    Some((Ward(*ward), ChannelNo(u32::from_be_bytes(*channel)), Seq(number(seq)?)))
}

impl From<Hole> for StoreError {
    fn from(hole: Hole) -> Self {
        Self::Damaged(format!("{hole}; {WAYS_OUT}"))
    }
}

/// Something that is wrong in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Events are missing from a journal, and no deletion explains it.
    Missing {
        ward: Ward,
        channel: ChannelNo,
        /// The channel's name, if known.
        channel_name: Option<Box<str>>,
        /// The first missing event.
        from: Seq,
        /// The last missing event.
        to: Seq,
    },
    /// A journal has events after its head.
    BeyondHead {
        ward: Ward,
        channel: ChannelNo,
        /// The channel's name, if known.
        channel_name: Option<Box<str>>,
        /// The stored head; [`Seq::NONE`] if there is none.
        head: Seq,
        /// The last event of the journal.
        last: Seq,
    },
    /// A range of keys that cannot be read.
    Unreadable(Hole),
    /// A key or value with the wrong structure for its kind.
    Malformed(Key),
    /// A record that cannot be decoded.
    Illegible(Illegible),
    /// The store is of a newer format than this version reads.
    Newer {
        /// The format of the store.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// There are more events than were ever appended.
    Miscounted {
        /// The number of events found.
        found: u64,
        /// The number of events ever appended, as the store recorded it.
        counted: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { ward, channel, channel_name, from, to } => {
                let channel_label = ChannelLabel { ward: *ward, channel: *channel, channel_name: channel_name.as_deref() };
                write!(f, "{channel_label}: the events {from} to {to} are missing")
            }
            Self::BeyondHead { ward, channel, channel_name, head, last } => {
                let channel_label = ChannelLabel { ward: *ward, channel: *channel, channel_name: channel_name.as_deref() };
                write!(f, "{channel_label}: the journal ends at {last}, its head is {head}")
            }
            Self::Unreadable(hole) => hole.fmt(f),
            Self::Illegible(illegible) => illegible.fmt(f),
            Self::Newer { found, known } => write!(
                f,
                "it was written in format {found}, this version of tertulia reads up to {known}: use the version that wrote it"
            ),
            Self::Malformed(key) => write!(f, "the record {key} does not have the structure of its kind"),
            Self::Miscounted { found, counted } => write!(f, "there are {found} events, but only {counted} were ever appended"),
        }
    }
}

/// An audit in progress: records are passed to it in the order of their keys.
pub struct Audit {
    problems_kept: usize,
    inspect: Box<dyn Inspect + Send>,
    report: Report,
    ward: u8,
    channels: BTreeMap<ChannelNo, Channel>,
    /// The number of stored problems from earlier wards.
    earlier_problems: usize,
}

#[derive(Default)]
struct Channel {
    last: Seq,
    gaps: Vec<(Seq, Seq)>,
    head: Seq,
    lowest_kept: Seq,
    name: Option<Box<str>>,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            problems_kept: PROBLEMS_KEPT,
            inspect: Box::new(()),
            report: Report::default(),
            ward: 0,
            channels: BTreeMap::new(),
            earlier_problems: 0,
        }
    }
}

impl Audit {
    /// An audit that also decodes each record.
    pub(super) fn inspecting(inspect: impl Inspect + Send + 'static) -> Self {
        Self { inspect: Box::new(inspect), ..Self::default() }
    }

    /// An audit whose report has every problem, without a limit.
    pub(super) fn keeping_all() -> Self {
        Self { problems_kept: usize::MAX, ..Self::default() }
    }

    /// Audits records in the order of their keys. `progress` gets the number of records read every few thousand.
    ///
    /// # Errors
    /// The first error of the iterator.
    pub fn run<E>(
        mut self,
        records: impl Iterator<Item = Result<(Key, Value), E>>,
        mut progress: impl FnMut(u64),
    ) -> Result<Report, E> {
        for record in records {
            let (key, value) = record?;
            self.read(&key, &value);
            if self.report.records.is_multiple_of(PROGRESS_EVERY) {
                progress(self.report.records);
            }
        }
        Ok(self.finish())
    }

    /// Audits all readable records in the order of their keys. An unreadable range is a problem like any other.
    pub fn run_on(mut self, records: impl Iterator<Item = Result<(Key, Value), Hole>>, mut progress: impl FnMut(u64)) -> Report {
        for record in records {
            match record {
                Ok((key, value)) => {
                    self.read(&key, &value);
                    if self.report.records.is_multiple_of(PROGRESS_EVERY) {
                        progress(self.report.records);
                    }
                }
                Err(hole) => self.problem(Problem::Unreadable(hole)),
            }
        }
        self.finish()
    }

    /// Audits the next record.
    pub(super) fn read(&mut self, key: &Key, value: &[u8]) {
        self.report.records += 1;
        self.report.bytes += (key.as_bytes().len() + value.len()) as u64;
        let [ward, kind, rest @ ..] = key.as_bytes() else { return self.problem(Problem::Malformed(key.clone())) };
        if *ward != self.ward {
            self.conclude_ward();
            self.ward = *ward;
        }
        let well_formed = match *kind {
            kind if kind == Kind::Journal as u8 => self.read_event(rest),
            kind if kind == Kind::Head as u8 => self.read_number(rest, value, |channel| &mut channel.head),
            kind if kind == Kind::Tombstone as u8 => self.read_number(rest, value, |channel| &mut channel.lowest_kept),
            _ if *key == identity_key() => format_from(value).map(|found| {
                if found > FORMAT {
                    self.problem(Problem::Newer { found, known: FORMAT });
                }
            }),
            _ if *key == counts_key() => counts_from(value).map(|counts| self.report.counts = counts),
            _ => Some(()),
        };
        if well_formed.is_none() {
            self.problem(Problem::Malformed(key.clone()));
        } else if let Some(fault) = self.inspect.fault(key, value) {
            self.report.illegible += 1;
            self.problem(Problem::Illegible(Illegible { ward: Ward(*ward), fault, channel_name: None }));
        } else if let Some((channel, name)) = self.inspect.named(key, value) {
            self.channels.entry(channel).or_default().name = Some(name.into());
        }
    }

    /// Ends the audit.
    pub(super) fn finish(mut self) -> Report {
        self.conclude_ward();
        let (found, counted) = (self.report.events, self.report.counts.events);
        if found > counted {
            self.problem(Problem::Miscounted { found, counted });
        }
        self.report
    }

    fn read_event(&mut self, rest: &[u8]) -> Option<()> {
        let (channel, seq) = rest.split_first_chunk()?;
        let seq = Seq(number(seq)?);
        let channel = self.channels.entry(ChannelNo(u32::from_be_bytes(*channel))).or_default();
        self.report.events += 1;
        if seq != channel.last.next() {
            channel.gaps.push((channel.last.next(), Seq(seq.0.saturating_sub(1))));
        }
        channel.last = seq;
        Some(())
    }

    fn read_number(&mut self, rest: &[u8], value: &[u8], field: impl Fn(&mut Channel) -> &mut Seq) -> Option<()> {
        let channel = ChannelNo(u32::from_be_bytes(rest.try_into().ok()?));
        let value = Seq(number(value)?);
        *field(self.channels.entry(channel).or_default()) = value;
        Some(())
    }

    fn conclude_ward(&mut self) {
        let ward = Ward(self.ward);
        let channels = std::mem::take(&mut self.channels);
        // The record of a channel's name comes after most of the channel's other records.
        for problem in &mut self.report.problems[self.earlier_problems..] {
            if let Problem::Illegible(Illegible { fault: Fault { channel: Some(channel), .. }, channel_name, .. }) = problem {
                *channel_name = channels.get(channel).and_then(|channel| channel.name.clone());
            }
        }
        // A hole may begin or end in another ward.
        for problem in &mut self.report.problems {
            if let Problem::Unreadable(hole) = problem {
                hole.name(ward, &channels);
            }
        }
        for (number, channel) in channels {
            let channel_name = channel.name;
            self.report.channels += u64::from(channel.last > Seq::NONE || channel.head > Seq::NONE);
            if channel.last > channel.head && channel.last >= channel.lowest_kept {
                let (channel_name, head, last) = (channel_name.clone(), channel.head, channel.last);
                self.problem(Problem::BeyondHead { ward, channel: number, channel_name, head, last });
            }
            // The rest of the journal is missing too if its head is further on.
            let tail = (channel.head > channel.last).then(|| (channel.last.next(), channel.head));
            for (from, to) in channel.gaps.into_iter().chain(tail) {
                let from = from.max(channel.lowest_kept);
                if from <= to {
                    self.problem(Problem::Missing { ward, channel: number, channel_name: channel_name.clone(), from, to });
                }
            }
        }
        self.earlier_problems = self.report.problems.len();
    }

    fn problem(&mut self, problem: Problem) {
        self.report.problem_count += 1;
        if self.report.problems.len() < self.problems_kept {
            self.report.problems.push(problem);
        }
    }
}

impl From<Problem> for StoreError {
    fn from(problem: Problem) -> Self {
        Self::Damaged(problem.to_string())
    }
}

#[cfg(test)]
mod tests;
