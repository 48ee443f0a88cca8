//! The story of a decision, in plain words.

use super::ActorHouse;
use crate::ports::house::Refused;
use crate::ports::house::decisions::{Why, WhyQuery};

impl ActorHouse {
    pub(super) async fn tell_why(&self, _query: WhyQuery) -> Result<Why, Refused> {
        Err(Refused::NotYet("why is not in this version".into()))
    }
}
