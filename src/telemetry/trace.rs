//! Which trace a turn belongs to: ids that travel with messages and can be stored, instead of open spans.

use std::fmt;
use std::str::FromStr;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The trace of one turn. Its root span is known from the beginning, although it is written last: its id is the lower half of
/// the trace's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnTrace(u128);

/// A span that others can lie under or link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRef {
    trace: u128,
    span: u64,
}

/// The text is not the 32 hexadecimal digits of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trace is 32 hexadecimal digits, not \"{0}\"")]
pub struct NotATrace(String);

impl TurnTrace {
    /// A new trace, from 128 random bits.
    pub const fn new(random: u128) -> Self {
        // A span's id must not be zero.
        Self(if random as u64 == 0 { random | 1 } else { random })
    }

    /// The bits, to be stored; [`Self::new`] takes them back.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// Its root span.
    pub const fn root(self) -> SpanRef {
        SpanRef { trace: self.0, span: self.0 as u64 }
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

impl FromStr for TurnTrace {
    type Err = NotATrace;

    fn from_str(text: &str) -> Result<Self, NotATrace> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(bits) if is_hex => Ok(Self::new(bits)),
            _ => Err(NotATrace(text.chars().take(40).collect())),
        }
    }
}

impl SpanRef {
    /// Whether the span lies in this trace.
    pub const fn is_in(self, trace: TurnTrace) -> bool {
        self.trace == trace.0
    }

    /// The span's own id.
    pub const fn span_id(self) -> u64 {
        self.span
    }

    /// As OpenTelemetry knows it. Always sampled: every decision is on record, thinning out is a collector's business.
    pub(super) fn context(self) -> SpanContext {
        let (trace, span) = (TraceId::from(self.trace), SpanId::from(self.span));
        SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
    }

    pub(super) fn of(context: &SpanContext) -> Self {
        Self { trace: u128::from_be_bytes(context.trace_id().to_bytes()), span: u64::from_be_bytes(context.span_id().to_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_survives_being_stored_as_text() {
        let trace = TurnTrace::new(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

        assert_eq!(trace.to_string(), "0123456789abcdef0011223344556677");
        assert_eq!(trace.to_string().parse(), Ok(trace));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for text in ["", "12", "+123456789abcdef0011223344556677", "0123456789abcdef001122334455667ä"] {
            assert!(text.parse::<TurnTrace>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_root_span_never_has_the_id_zero() {
        assert_ne!(TurnTrace::new(1 << 64).root().span_id(), 0);
        assert_ne!(TurnTrace::new(0).as_u128(), 0);
    }
}
