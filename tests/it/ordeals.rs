//! Long trials of the real program: killed, halted, made to hang, starved, its store damaged, its clock set. Each trial keeps a ledger of what
//! the server promised.

mod clock;
mod damage;
mod durable;
mod halted;
mod hung;
mod kills;
mod record;
mod starved;
