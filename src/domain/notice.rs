//! Decides whether a statement carries the server's notice that companions are AI (docs/design/safety.md).

use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::id::PersonId;
use super::moment::Moment;
use super::named::named;

/// How often people receive the notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// With the first answer to a person in a guild.
    Once,
    /// Also with the first answer of each day, and with the first one after three hours.
    Daily,
    Off,
}

/// When a person receives the notice again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// With the first answer of each day.
    pub each_day: bool,
    /// With the first answer after this time.
    pub after: Option<Duration>,
}

named! {
    /// The occasion for a notice. If there are several, the most important one.
    pub enum Occasion {
        /// The interval since a person's last notice has passed.
        Interval = "interval",
        /// A new day has begun since a person's last notice.
        Day = "day",
        /// A person has never received the notice.
        First = "first",
    }
}

/// A notice that a statement must carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    /// All people whom the statement answers, including those whose notice is not due. All of them see it.
    pub people: Vec<PersonId>,
    pub occasion: Occasion,
    /// Whether it only stays with a statement that takes the place of the one that carried it. Then it is no further notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

impl Notice {
    /// When a person receives the notice again. None: the notice is off. Where there are minors, it is repeated each hour, whatever the setting.
    pub const fn repeat(self, has_minors: bool) -> Option<Repeat> {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        const THREE_HOURS: Duration = Duration::from_secs(3 * 60 * 60);
        match self {
            _ if has_minors => Some(Repeat { each_day: true, after: Some(HOUR) }),
            Self::Off => None,
            Self::Once => Some(Repeat { each_day: false, after: None }),
            Self::Daily => Some(Repeat { each_day: true, after: Some(THREE_HOURS) }),
        }
    }
}

impl Repeat {
    /// The notice that a statement must carry. `people` are the people whom the statement answers, each with the time of the last notice. None if no
    /// notice is due.
    pub fn owed(
        self,
        people: impl IntoIterator<Item = (PersonId, Option<Moment>)>,
        now: Moment,
        zone: &TimeZone,
    ) -> Option<Owed> {
        let (mut all, mut newest) = (Vec::new(), None);
        for (person, told) in people {
            newest = newest.max(self.due(told, now, zone));
            all.push(person);
        }
        newest.map(|occasion| Owed { people: all, occasion, again: false })
    }

    fn due(self, told: Option<Moment>, now: Moment, zone: &TimeZone) -> Option<Occasion> {
        let Some(told) = told else { return Some(Occasion::First) };
        if self.each_day && told.zoned(zone).date() != now.zoned(zone).date() {
            return Some(Occasion::Day);
        }
        self.after.is_some_and(|after| now.since(told) >= after).then_some(Occasion::Interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    /// A moment of 28 November 2026 or later, in seconds after its midnight (UTC).
    fn at(secs: u64) -> Moment {
        Moment::from_micros((1_795_824_000 + secs) * 1_000_000)
    }

    fn zone(hours: i8) -> TimeZone {
        TimeZone::fixed(jiff::tz::offset(hours))
    }

    fn occasion(notice: Notice, told: Option<Moment>, now: Moment, zone: &TimeZone) -> Option<Occasion> {
        notice.repeat(false)?.owed([("ana".into(), told)], now, zone).map(|owed| owed.occasion)
    }

    #[test]
    fn once_tells_each_person_with_the_first_answer_and_never_again() {
        let year = at(365 * 24 * HOUR);

        assert_eq!(occasion(Notice::Once, None, at(0), &TimeZone::UTC), Some(Occasion::First));
        assert_eq!(occasion(Notice::Once, Some(at(0)), year, &TimeZone::UTC), None);
        assert_eq!(occasion(Notice::Off, None, at(0), &TimeZone::UTC), None);
    }

    #[test]
    fn daily_tells_again_when_the_day_changes_where_the_guild_is() {
        let (evening, night) = (at(22 * HOUR + 1_800), at(23 * HOUR + 1_800));

        // It is 23:30 and 0:30 an hour east of Greenwich, and 13:30 and 14:30 nine hours west of it.
        assert_eq!(occasion(Notice::Daily, Some(evening), night, &zone(1)), Some(Occasion::Day));
        assert_eq!(occasion(Notice::Daily, Some(evening), night, &zone(-9)), None);
        let (before, after) = (at(8 * HOUR + 3_599), at(9 * HOUR));
        assert_eq!(occasion(Notice::Daily, Some(before), after, &zone(-9)), Some(Occasion::Day));
        assert_eq!(occasion(Notice::Daily, Some(before), after, &zone(1)), None);
    }

    #[test]
    fn daily_tells_again_after_three_hours() {
        let told = at(9 * HOUR);

        assert_eq!(occasion(Notice::Daily, Some(told), at(12 * HOUR - 1), &TimeZone::UTC), None);
        assert_eq!(occasion(Notice::Daily, Some(told), at(12 * HOUR), &TimeZone::UTC), Some(Occasion::Interval));
        assert_eq!(occasion(Notice::Daily, Some(told), told - Duration::from_secs(60), &TimeZone::UTC), None, "a clock set back");
    }

    #[test]
    fn where_there_are_minors_everybody_is_told_each_hour() {
        for notice in [Notice::Once, Notice::Daily, Notice::Off] {
            let owed = |now| notice.repeat(true)?.owed([("ana".into(), Some(at(0)))], now, &TimeZone::UTC);

            assert_eq!(owed(at(HOUR - 1)), None);
            assert_eq!(owed(at(HOUR)).map(|owed| owed.occasion), Some(Occasion::Interval));
        }
    }

    #[test]
    fn all_whom_a_statement_answers_are_told_together_for_the_weightiest_reason() {
        let people = [("ana".into(), Some(at(HOUR))), ("ben".into(), None), ("cy".into(), Some(at(0)))];
        let daily = Notice::Daily.repeat(false).unwrap();

        let owed = daily.owed(people.clone(), at(3 * HOUR), &TimeZone::UTC).unwrap();
        assert_eq!(owed, Owed { people: people.map(|(person, _)| person).to_vec(), occasion: Occasion::First, again: false });
        assert_eq!(daily.owed([], at(0), &TimeZone::UTC), None, "a statement that answers nobody");
    }
}
