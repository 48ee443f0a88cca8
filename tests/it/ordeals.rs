//! What the real program goes through in months, in minutes: killed, halted, made to hang, starved, damaged, its clock set. Each trial keeps its own book.

mod clock;
mod damage;
mod durable;
mod halted;
mod hung;
mod kills;
mod record;
mod starved;
