//! Reads a store or a backup through: journals without gaps that no deletion explains, heads that agree, counts that fit, and records that
//! read as what they should be, where somebody is given who knows how they read.

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

/// How often progress is told: every so many records.
pub(super) const PROGRESS_EVERY: u64 = 4096;

// The report stays readable whatever happened to a store; the number of problems is always whole.
const PROBLEMS_KEPT: usize = 100;

/// What a reading found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Keys with a value.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Events in journals.
    pub events: u64,
    /// Channels with a journal.
    pub channels: u64,
    /// What the store says was ever committed.
    pub counts: Counts,
    /// How many problems there are.
    pub problem_count: u64,
    /// How many of them are records that are whole, and do not read as what they should be.
    pub illegible: u64,
    /// The first hundred of them.
    pub problems: Vec<Problem>,
}

impl Report {
    /// How many places cannot be read at all, among the problems that are kept.
    pub(super) fn holes(&self) -> usize {
        self.problems.iter().filter(|problem| matches!(problem, Problem::Unreadable(_))).count()
    }

    /// Whether everything is as it should be.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }
}

/// A place that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The last key before it that could be read; none: it is at the beginning.
    pub after: Option<Key>,
    /// The first key after it that can be read; none: it reaches to the end.
    pub before: Option<Key>,
    /// What sled says of it.
    pub detail: String,
    /// What the channels of these two keys are called, as far as that can be told.
    pub channel_names: [Option<Box<str>>; 2],
}

impl Hole {
    /// Learns what the channels of a ward are called.
    fn name(&mut self, ward: Ward, channels: &BTreeMap<ChannelNo, Channel>) {
        for (key, channel_name) in [&self.after, &self.before].into_iter().zip(&mut self.channel_names) {
            if let Some((_, channel, _)) = key.as_ref().and_then(event_of).filter(|(of, ..)| *of == ward) {
                *channel_name = channels.get(&channel).and_then(|channel| channel.name.clone());
            }
        }
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, before, detail, channel_names: [of_after, of_before] } = self;
        let after = after.as_ref().map(|key| Named { key, channel_name: of_after.as_deref() });
        let before = before.as_ref().map(|key| Named { key, channel_name: of_before.as_deref() });
        match (after, before) {
            (Some(after), Some(before)) => write!(f, "what lies between {after} and {before} cannot be read: {detail}"),
            (Some(after), None) => write!(f, "what lies after {after} cannot be read: {detail}"),
            (None, Some(before)) => write!(f, "what lies before {before} cannot be read: {detail}"),
            (None, None) => write!(f, "nothing can be read: {detail}"),
        }
    }
}

/// A record that is whole as far as its bytes go, and does not read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegible {
    /// Where.
    pub ward: Ward,
    /// What is wrong.
    pub fault: Fault,
    /// What its channel is called, if that can be told.
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

/// A record, for people.
struct Named<'a> {
    key: &'a Key,
    channel_name: Option<&'a str>,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match event_of(self.key) {
            Some((ward, channel, seq)) => {
                write!(f, "event {seq} of {}", Whose { ward, channel, channel_name: self.channel_name })
            }
            None => write!(f, "the record {}", self.key),
        }
    }
}

/// A channel by its numbers, and by its name where that is known.
struct Whose<'a> {
    ward: Ward,
    channel: ChannelNo,
    channel_name: Option<&'a str>,
}

impl fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ward {}, channel {}", self.ward.0, self.channel.0)?;
        self.channel_name.map_or(Ok(()), |channel_name| write!(f, " ({channel_name})"))
    }
}

/// Which event a key is of, and where; none: it is another record's.
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

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Events are missing from a journal, and no deletion explains it.
    Missing {
        /// Where.
        ward: Ward,
        /// Whose journal.
        channel: ChannelNo,
        /// What it is called, if that can be told.
        channel_name: Option<Box<str>>,
        /// The first that is missing.
        from: Seq,
        /// The last that is missing.
        to: Seq,
    },
    /// A journal goes on after what is kept as its last event.
    BeyondHead {
        /// Where.
        ward: Ward,
        /// Whose journal.
        channel: ChannelNo,
        /// What it is called, if that can be told.
        channel_name: Option<Box<str>>,
        /// What is kept as its last event; [`Seq::NONE`] when nothing is.
        head: Seq,
        /// Its last event.
        last: Seq,
    },
    /// A place that cannot be read at all.
    Unreadable(Hole),
    /// A key or value that does not have the shape of its kind.
    Malformed(Key),
    /// A record that does not read as what it should be.
    Illegible(Illegible),
    /// The store is of a newer format than this version reads.
    Newer {
        /// Its format.
        found: u64,
        /// The newest format known here.
        known: u64,
    },
    /// There are more events than were ever appended.
    Miscounted {
        /// Events found.
        found: u64,
        /// Events ever appended, as the store says.
        counted: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { ward, channel, channel_name, from, to } => {
                let whose = Whose { ward: *ward, channel: *channel, channel_name: channel_name.as_deref() };
                write!(f, "{whose}: the events {from} to {to} are missing")
            }
            Self::BeyondHead { ward, channel, channel_name, head, last } => {
                let whose = Whose { ward: *ward, channel: *channel, channel_name: channel_name.as_deref() };
                write!(f, "{whose}: the journal ends at {last}, its head is {head}")
            }
            Self::Unreadable(hole) => hole.fmt(f),
            Self::Illegible(illegible) => illegible.fmt(f),
            Self::Newer { found, known } => write!(
                f,
                "it was written in format {found}, this version of tertulia reads up to {known}: use the version that wrote it"
            ),
            Self::Malformed(key) => write!(f, "the record {key} does not have the shape of its kind"),
            Self::Miscounted { found, counted } => write!(f, "there are {found} events, and only {counted} were ever appended"),
        }
    }
}

/// A reading in progress: records are fed to it in the order of their keys.
pub struct Audit {
    problems_kept: usize,
    inspect: Box<dyn Inspect + Send>,
    report: Report,
    ward: u8,
    channels: BTreeMap<ChannelNo, Channel>,
    /// So many of the problems that are kept were found in wards before this one.
    of_wards_before: usize,
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
            of_wards_before: 0,
        }
    }
}

impl Audit {
    /// A reading that looks as well whether each record reads as what it should be.
    pub(super) fn inspecting(inspect: impl Inspect + Send + 'static) -> Self {
        Self { inspect: Box::new(inspect), ..Self::default() }
    }

    /// A reading whose report names every problem, however many there are.
    pub(super) fn keeping_all() -> Self {
        Self { problems_kept: usize::MAX, ..Self::default() }
    }

    /// Reads records through that come in the order of their keys; `progress` hears the number read every few thousand.
    ///
    /// # Errors
    /// The first error that the records hold.
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

    /// Reads all records through that can be read, in the order of their keys; what cannot be is a problem like any other.
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

    /// Takes the next record in.
    pub(super) fn read(&mut self, key: &Key, value: &[u8]) {
        self.report.records += 1;
        self.report.bytes += (key.as_bytes().len() + value.len()) as u64;
        let [ward, kind, rest @ ..] = key.as_bytes() else { return self.problem(Problem::Malformed(key.clone())) };
        if *ward != self.ward {
            self.conclude_ward();
            self.ward = *ward;
        }
        let understood = match *kind {
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
        if understood.is_none() {
            self.problem(Problem::Malformed(key.clone()));
        } else if let Some(fault) = self.inspect.fault(key, value) {
            self.report.illegible += 1;
            self.problem(Problem::Illegible(Illegible { ward: Ward(*ward), fault, channel_name: None }));
        } else if let Some((channel, name)) = self.inspect.named(key, value) {
            self.channels.entry(channel).or_default().name = Some(name.into());
        }
    }

    /// What was found.
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
        // What a channel is called comes after most of what belongs to it.
        for problem in &mut self.report.problems[self.of_wards_before..] {
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
        self.of_wards_before = self.report.problems.len();
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
