//! The real program: started, killed, starved, and what it says then.

mod bench;
mod commands;
mod company;
mod crashes;
mod first_contact;
mod gatherings;
mod health;
mod metrics;
mod rounds;
mod signals;
mod starved;
mod telling;
mod unfit;
mod usage;
mod why;
mod writers;
