//! Reads a store or a backup completely and checks it: every gap in a journal is explained by a deletion, heads match, and counts
//! match. With an [`Inspect`], it also checks that each record can be decoded.

use std::collections::BTreeMap;
use std::fmt;

use super::batch::number;
use super::manifest::{Counts, FORMAT};
use super::sled::facts::{counts_from, counts_key, format_from, identity_key};
use crate::domain::id::{Seq, Ward};
use crate::ports::store::Value;
use crate::ports::store::key::{ChannelNo, Key, Kind};
use crate::ports::store::maintenance::{Fault, Inspect};

/// Progress is reported after this many records.
pub(super) const PROGRESS_EVERY: u64 = 4096;

// The limit keeps the report readable. The number of problems is always exact.
const PROBLEMS_KEPT: usize = 100;

/// The number of name records of a channel with a journal: from name to number, and back.
const NAMES: u8 = 2;

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
    /// The number of problems that are complete records which cannot be decoded, or missing names of channels.
    pub illegible: u64,
    /// The first hundred problems, or all if the audit keeps all.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Whether no problem was found.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }
}

/// A record that cannot be decoded although its bytes are intact, or a missing record of a channel's name.
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

/// A channel's numbers, and its name if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelLabel {
    pub ward: Ward,
    pub channel: ChannelNo,
    pub name: Option<Box<str>>,
}

impl fmt::Display for ChannelLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ward {}, channel {}", self.ward.0, self.channel.0)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// A problem of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Events are missing from a journal although no deletion explains it.
    Missing {
        channel: ChannelLabel,
        /// The first missing event.
        from: Seq,
        /// The last missing event.
        to: Seq,
    },
    /// A journal has events after its head.
    BeyondHead {
        channel: ChannelLabel,
        /// The stored head; [`Seq::NONE`] if there is none.
        head: Seq,
        /// The last event of the journal.
        last: Seq,
    },
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
            Self::Missing { channel, from, to } => write!(f, "{channel}: the events {from} to {to} are missing"),
            Self::BeyondHead { channel, head, last } => write!(f, "{channel}: the journal ends at {last}, its head is {head}"),
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
    /// The number of records of its name.
    names: u8,
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

    /// The same audit, with every problem in its report, without a limit.
    pub(super) fn keeping_all(self) -> Self {
        Self { problems_kept: usize::MAX, ..self }
    }

    /// Audits records in the order of their keys. `progress` receives the number of records read every few thousand.
    ///
    /// # Errors
    /// Returns the first error of the iterator.
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

    /// Audits the next record.
    fn read(&mut self, key: &Key, value: &[u8]) {
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
            self.illegible(Illegible { ward: Ward(*ward), fault, channel_name: None });
        } else if let Some((channel, name)) = self.inspect.named(key, value) {
            let channel = self.channels.entry(channel).or_default();
            channel.name = Some(name.into());
            channel.names += 1;
        }
    }

    /// Ends the audit.
    fn finish(mut self) -> Report {
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
        for (number, channel) in channels {
            let label = ChannelLabel { ward, channel: number, name: channel.name };
            let has_journal = channel.last > Seq::NONE || channel.head > Seq::NONE;
            self.report.channels += u64::from(has_journal);
            if has_journal && channel.names < NAMES && self.inspect.finds_names() {
                let detail = "it is missing, so the channel may not be found under its name".to_owned();
                let fault = Fault { what: "a record of the name".into(), channel: Some(number), detail };
                self.illegible(Illegible { ward, fault, channel_name: label.name.clone() });
            }
            if channel.last > channel.head && channel.last >= channel.lowest_kept {
                self.problem(Problem::BeyondHead { channel: label.clone(), head: channel.head, last: channel.last });
            }
            // The rest of the journal is missing too if its head is further on.
            let tail = (channel.head > channel.last).then(|| (channel.last.next(), channel.head));
            for (from, to) in channel.gaps.into_iter().chain(tail) {
                let from = from.max(channel.lowest_kept);
                if from <= to {
                    self.problem(Problem::Missing { channel: label.clone(), from, to });
                }
            }
        }
        self.earlier_problems = self.report.problems.len();
    }

    fn illegible(&mut self, illegible: Illegible) {
        self.report.illegible += 1;
        self.problem(Problem::Illegible(illegible));
    }

    fn problem(&mut self, problem: Problem) {
        self.report.problem_count += 1;
        if self.report.problems.len() < self.problems_kept {
            self.report.problems.push(problem);
        }
    }
}

#[cfg(test)]
mod tests;
