//! The trace ids of turns. They travel with messages and can be stored, so no span is held open.

use std::fmt;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use super::attributes as name;
use crate::domain::id::{ChannelId, GuildId, Seq, Ticket, TurnId};

/// The trace of one turn. The id of its root span is known from the beginning, although the root is written last: it is the lower half of the
/// trace's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnTrace(u128);

/// The turn of a span, with its guild and channel.
#[derive(Clone, Debug)]
pub struct InTurn<'a> {
    pub trace: TurnTrace,
    /// The number of the turn's message. Channel and number together are the turn's id, which stays the same after a restart.
    pub message: Seq,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
}

impl InTurn<'_> {
    /// The attributes that every span of a turn has.
    pub fn attributes(&self) -> Vec<KeyValue> {
        vec![
            KeyValue::new(name::TURN_ID, format!("{}#{}", self.channel, self.message)),
            KeyValue::new(name::GUILD_ID, self.guild.to_string()),
            KeyValue::new(name::CHANNEL_ID, self.channel.to_string()),
        ]
    }
}

/// A reference to a span, for parents and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRef {
    trace: u128,
    span: u64,
}

impl TurnTrace {
    /// Creates a trace from 128 random bits.
    pub const fn new(random: u128) -> Self {
        // A span's id must not be zero.
        Self(if random as u64 == 0 { random | 1 } else { random })
    }

    /// The trace of a turn.
    pub const fn of_turn(turn: TurnId) -> Self {
        Self::new(turn.0)
    }

    /// The bits, for storage. [`Self::new`] accepts them.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    pub const fn root(self) -> SpanRef {
        SpanRef { trace: self.0, span: self.0 as u64 }
    }

    /// The span of the question or reply with this ticket. Its id is computed, because its children are written first.
    pub const fn of(self, ticket: Ticket) -> SpanRef {
        // The finalizer of splitmix64: consecutive numbers give unrelated ids.
        let mut bits = (self.0 as u64) ^ ticket.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        SpanRef { trace: self.0, span: if bits == 0 { 1 } else { bits } }
    }
}

impl fmt::Display for TurnTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TurnTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnTrace({self})")
    }
}

impl SpanRef {
    pub const fn trace(self) -> TurnTrace {
        TurnTrace(self.trace)
    }

    /// Another span of the same trace.
    pub(super) const fn sibling(self, span: u64) -> Self {
        Self { trace: self.trace, span }
    }

    /// Converts it to the OpenTelemetry type.
    pub(super) fn context(self, is_sampled: bool) -> SpanContext {
        let (trace, span) = (TraceId::from(self.trace), SpanId::from(self.span));
        let flags = if is_sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
        SpanContext::new(trace, span, flags, false, TraceState::NONE)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_question_of_a_turn_has_its_own_stable_span_id() {
        let trace = TurnTrace::new(42);
        let spans: BTreeSet<_> = (0..1_000).map(|ticket| trace.of(Ticket(ticket)).span).chain([trace.root().span]).collect();

        assert_eq!(spans.len(), 1_001);
        assert_eq!(trace.of(Ticket(7)), trace.of(Ticket(7)));
        assert_ne!(trace.of(Ticket(7)).span, TurnTrace::new(43).of(Ticket(7)).span);
    }

    #[test]
    fn a_root_span_never_has_the_id_zero() {
        assert_ne!(TurnTrace::new(1 << 64).root().span, 0);
        assert_ne!(TurnTrace::of_turn(TurnId(0)).as_u128(), 0);
    }
}
