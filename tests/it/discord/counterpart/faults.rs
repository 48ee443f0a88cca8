//! Faults that tests inject.

use std::time::Duration;

use serde_json::Value;

use super::Id;
use super::journal::Request;

/// All active faults.
#[derive(Default)]
pub struct Faults {
    rest: Vec<(u64, Fault)>,
    made: u64,
    /// What happens to connections to the main address.
    pub connects: Connects,
    /// What happens to connections to the resume address that READY announces.
    pub resume_connects: Connects,
    /// How many of the next IDENTIFYs are answered with an invalid session.
    pub failing_identifies: usize,
    /// How many of the next IDENTIFYs get no answer.
    pub ignored_identifies: usize,
    /// How many of the next RESUMEs are answered with an invalid session, and whether that session is marked as resumable.
    pub failing_resumes: usize,
    pub failing_resumes_resumable: bool,
}

/// Whether there is one left of something that is counted. Counts down.
pub fn take(left: &mut usize) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}

/// What happens to connections to an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connects {
    #[default]
    Well,
    /// They are answered with 503 instead of a WebSocket.
    Refused,
    /// They are never answered.
    Hanging,
    /// They open, and no HELLO comes.
    Mute,
}

/// A fault of requests.
#[derive(Clone, Debug)]
pub struct Fault {
    pub on: On,
    pub does: Does,
    /// How many requests it affects. None: all until it is lifted.
    pub times: Option<u32>,
}

/// Which requests a fault affects: those that match every given field.
#[derive(Clone, Debug, Default)]
pub struct On {
    /// The name of the route (`Route::name`).
    pub route: Option<&'static str>,
    pub guild: Option<Id>,
    pub channel: Option<Id>,
}

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Does {
    /// It is refused with 429, whatever the state of the buckets is.
    TooMany { retry_after: Duration, scope: Scope },
    /// It is answered with this status and a page that is not JSON.
    Status(u16),
    /// It is answered with this status and this JSON.
    Says(u16, Value),
    /// It is not handled before the fault is lifted.
    Hang,
    /// It is handled after this delay.
    Slow(Duration),
    /// The connection is cut before it is handled.
    Cut,
    /// It is handled, and the connection is cut before the answer.
    CutAfterwards,
    /// It is handled, and not answered before the fault is lifted.
    HangAfterwards,
    /// It is handled, and the answer's body is truncated.
    Garbled,
}

/// The scope of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    Global,
    Shared,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Global => "global",
            Self::Shared => "shared",
        }
    }
}

impl On {
    /// All requests of a route.
    pub fn route(route: &'static str) -> Self {
        Self { route: Some(route), ..Self::default() }
    }

    fn hits(&self, request: &Request) -> bool {
        self.route.is_none_or(|route| route == request.route)
            && self.guild.is_none_or(|guild| request.guild == Some(guild))
            && self.channel.is_none_or(|channel| request.channel == Some(channel))
    }
}

impl Faults {
    /// Adds a fault. Returns its number, which lifts it.
    pub fn put(&mut self, fault: Fault) -> u64 {
        self.made += 1;
        self.rest.push((self.made, fault));
        self.made
    }

    pub fn lift(&mut self, fault: u64) {
        self.rest.retain(|(number, _)| *number != fault);
    }

    pub fn is_lifted(&self, fault: u64) -> bool {
        !self.rest.iter().any(|(number, _)| *number == fault)
    }

    /// The fault that affects this request, with its number. Counts down the remaining uses of the fault.
    pub fn hit(&mut self, request: &Request) -> Option<(u64, Does)> {
        let hits = |(_, fault): &&mut (u64, Fault)| fault.times != Some(0) && fault.on.hits(request);
        let (number, fault) = self.rest.iter_mut().find(hits)?;
        fault.times = fault.times.map(|times| times - 1);
        Some((*number, fault.does.clone()))
    }
}
